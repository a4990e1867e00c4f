//! The test scenarios.

#![no_std]
#![no_main]

// This module is not part of the library, so that the code of the other programs does not depend on it.
#[path = "../scenarios/mod.rs"]
mod scenarios;

#[cortex_m_rt::entry]
fn main() -> ! {
    scenarios::start()
}
