//! Fuzzes a game with two players. One sends arbitrary messages, and the other must be able to continue.
#![no_main]

use rakwire_fuzz::targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::snowfight(bytes));
