//! Messages outside connections, and RakNet's own messages inside them: reading and writing them gives the same bytes.
#![no_main]

use rakwire_fuzz::targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::offline(bytes));
