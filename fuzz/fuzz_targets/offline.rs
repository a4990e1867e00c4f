//! Messages outside of any connection, and those of RakNet itself inside one: what is read is written the same.
#![no_main]

use rakwire_fuzz::{hold, model::wire};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    hold(wire::offline(bytes));
    hold(wire::control(bytes));
});
