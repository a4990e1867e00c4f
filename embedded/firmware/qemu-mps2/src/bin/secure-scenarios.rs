//! The test scenarios with a server whose key the argument `server-key` has.

#![no_std]
#![no_main]

#[cortex_m_rt::entry]
fn main() -> ! {
    rakwire_qemu_mps2::scenarios::start()
}
