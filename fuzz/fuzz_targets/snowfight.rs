//! A game of two players, one of which sends arbitrary messages: the other one continues.
#![no_main]

use rakwire_fuzz::{hold, snowfight};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hold(snowfight::hostile_client(bytes)));
