//! Fuzzes the relay's admission of clients with and without tokens, in any order and at any time.
#![no_main]

use rakwire_fuzz::targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::admission(bytes));
