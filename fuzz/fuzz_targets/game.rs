//! Fuzzes two peers of the Game Protocol and the path between them with arbitrary operations and checks the guarantees.
#![no_main]

use rakwire_fuzz::targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::game(bytes));
