//! QEMU's board mps2-an386: a Cortex-M4 with a LAN9118 Ethernet chip and the timers of Arm's CMSDK.
//!
//! [`board::start`] does everything that is not the program: it runs the executor, the network and the time, reads the
//! arguments that QEMU hands over, and ends QEMU with the program's exit code.

#![no_std]

pub mod arguments;
pub mod board;
mod executor;
mod lan9118;
mod registers;
pub mod stack;
mod time_driver;

/// The program ends: QEMU's exit code.
pub fn exit(code: i32) -> ! {
    semihosting::process::exit(code)
}
