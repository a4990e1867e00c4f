//! The test scenarios.

#![no_std]
#![no_main]

#[cortex_m_rt::entry]
fn main() -> ! {
    rakwire_qemu_mps2::scenarios::start()
}
