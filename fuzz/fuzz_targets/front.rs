//! Datagrams from anyone to a front of the relay, and from its server.
#![no_main]

use rakwire_fuzz::targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::front(bytes));
