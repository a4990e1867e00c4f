//! Fuzzes a flow of a relay that knows the target's protocol with arbitrary datagrams from client and server.
#![no_main]

use rakwire_fuzz::targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::awareness(bytes));
