//! Clients that request admission by the relay, with tokens and without, in any order and at any time.
#![no_main]

use rakwire_fuzz::targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::admission(bytes));
