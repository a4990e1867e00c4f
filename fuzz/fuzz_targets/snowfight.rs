//! A game of two, of whom one says anything: the other plays on.
#![no_main]

use rakwire_fuzz::{hold, snowfight};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hold(snowfight::hostile_client(bytes)));
