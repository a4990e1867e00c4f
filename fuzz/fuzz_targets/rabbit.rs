//! Fuzzes Rabbit values of every type: unpacking and packing them must give the same bytes.
#![no_main]

use rakwire_fuzz::targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::rabbit(bytes));
