//! All operations on two peers of the Game Protocol and on the path between them, checked against their guarantees.
#![no_main]

use rakwire_fuzz::targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::game(bytes));
