//! Fuzzes the data channel port of the relay with datagrams from arbitrary sources.
#![no_main]

use rakwire_fuzz::targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::data_channels(bytes));
