//! Sequences of operations on two peers of the Game Protocol and the path between them, checked against the model.
#![no_main]

use rakwire_fuzz::hold;
use rakwire_fuzz::model::game;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hold(game::run(bytes).map(drop)));
