//! Datagrams of a connection: what is read is written the same.
#![no_main]

use rakwire_fuzz::{hold, model::wire};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hold(wire::datagram(bytes)));
