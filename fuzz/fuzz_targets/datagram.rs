//! Fuzzes datagrams of a connection: decoding and encoding them must give the same bytes.
#![no_main]

use rakwire_fuzz::targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::datagram(bytes));
