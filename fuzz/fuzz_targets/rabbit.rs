//! Packed values of every type: an unpacked value is packed to the same value.
#![no_main]

use rakwire_fuzz::{hold, model::rabbit};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hold(rabbit::values(bytes)));
