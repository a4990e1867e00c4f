//! The test scenarios with a server whose key the argument `server-key` has.

#![no_std]
#![no_main]

// No part of the library, so that the code of the other programs does not depend on it.
#[path = "../scenarios/mod.rs"]
mod scenarios;

#[cortex_m_rt::entry]
fn main() -> ! {
    scenarios::start()
}
