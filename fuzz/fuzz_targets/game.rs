//! Everything that can be done to two peers of the Game Protocol and to the path between them, against what they
//! promise.
#![no_main]

use rakwire_fuzz::targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::game(bytes));
