//! Fuzzes offline messages and RakNet's own messages in connections: decoding and encoding must give the same bytes.
#![no_main]

use rakwire_fuzz::targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::offline(bytes));
