//! Everything that can be done to the flows of the relay, against what they promise.
#![no_main]

use rakwire_fuzz::targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::relay(bytes));
