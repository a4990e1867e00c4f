//! Fuzzes a secure connection with unchanged and modified handshake fields, datagrams and tokens.
#![no_main]

use rakwire_fuzz::targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::secure(bytes));
