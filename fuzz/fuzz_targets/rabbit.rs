//! Packed values of every type: what is unpacked is packed the same.
#![no_main]

use rakwire_fuzz::{hold, model::rabbit};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hold(rabbit::values(bytes)));
