//! Each message of the game: an unpacked value is packed to the same value.
#![no_main]

use rakwire_fuzz::{hold, snowfight};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hold(snowfight::messages(bytes)));
