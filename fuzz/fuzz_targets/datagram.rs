//! Datagrams of a connection: a value that is read is written as the same bytes.
#![no_main]

use rakwire_fuzz::{hold, model::wire};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hold(wire::datagram(bytes)));
