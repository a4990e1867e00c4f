//! What a relay that knows a target's protocol makes of the datagrams of both ends.
#![no_main]

use rakwire_fuzz::targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::awareness(bytes));
