//! Fuzzes two peers and the path between them with arbitrary operations, and checks the guarantees of the protocol.
#![no_main]

use rakwire_fuzz::targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::endpoint(bytes));
