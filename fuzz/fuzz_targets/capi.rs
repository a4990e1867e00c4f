//! Fuzzes the functions of the C API with arbitrary calls.
#![no_main]

use rakwire_fuzz::targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::capi(bytes));
