//! All operations on the flows of the relay, checked against their guarantees.
#![no_main]

use rakwire_fuzz::targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::relay(bytes));
