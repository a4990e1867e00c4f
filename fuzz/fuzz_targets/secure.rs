//! A secure connection: fields of its handshake, its datagrams, and tokens, as they are and changed.
#![no_main]

use rakwire_fuzz::targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::secure(bytes));
