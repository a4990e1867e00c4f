//! A secure connection: the fields of its handshake, its datagrams and tokens, intact and modified.
#![no_main]

use rakwire_fuzz::targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::secure(bytes));
