//! The PROXY protocol at the beginning of a connection to the relay.
#![no_main]

use rakwire_fuzz::targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::proxy(bytes));
