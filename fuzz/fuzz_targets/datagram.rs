//! Datagrams of a connection: what is read is written the same.
#![no_main]

use rakwire_fuzz::targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::datagram(bytes));
