//! A game of two players, one of which sends anything: the other one keeps playing.
#![no_main]

use rakwire_fuzz::targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::snowfight(bytes));
