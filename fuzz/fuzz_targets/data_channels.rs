//! Datagrams from anyone to the data channels of the relay.
#![no_main]

use rakwire_fuzz::targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::data_channels(bytes));
