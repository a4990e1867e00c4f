//! Fuzzes a front of the relay with datagrams from arbitrary sources and from the server.
#![no_main]

use rakwire_fuzz::targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::front(bytes));
