//! Fuzzes the flows of the relay with arbitrary operations, and checks the guarantees.
#![no_main]

use rakwire_fuzz::targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::relay(bytes));
