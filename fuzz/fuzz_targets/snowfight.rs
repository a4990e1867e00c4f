//! Fuzzes a game with two players, one of which sends arbitrary messages. The other one must be able to continue.
#![no_main]

use rakwire_fuzz::targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::snowfight(bytes));
