//! Datagrams of both ends through a relay that knows the target's protocol.
#![no_main]

use rakwire_fuzz::targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::awareness(bytes));
