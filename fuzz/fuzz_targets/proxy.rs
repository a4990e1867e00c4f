//! Fuzzes the PROXY protocol header at the start of a connection to the relay.
#![no_main]

use rakwire_fuzz::targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::proxy(bytes));
