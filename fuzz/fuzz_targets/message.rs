//! Fuzzes messages of the game: unpacking and packing them must give the same bytes.
#![no_main]

use rakwire_fuzz::targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::message(bytes));
