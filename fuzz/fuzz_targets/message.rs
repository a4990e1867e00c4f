//! Each message of the game: what is unpacked is packed the same.
#![no_main]

use rakwire_fuzz::{hold, snowfight};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hold(snowfight::messages(bytes)));
