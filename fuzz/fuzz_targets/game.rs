//! Everything that can be done to two peers of the Game Protocol and to the path between them, against what they
//! promise.
#![no_main]

use rakwire_fuzz::hold;
use rakwire_fuzz::model::game;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hold(game::run(bytes).map(drop)));
