//! Each message of the game: what is unpacked is packed the same.
#![no_main]

use rakwire_fuzz::{game, hold};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hold(game::messages(bytes)));
