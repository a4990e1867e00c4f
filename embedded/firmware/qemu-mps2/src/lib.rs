//! QEMU's board mps2-an386: a Cortex-M4 with a LAN9118 Ethernet chip and the timers of Arm's CMSDK.
//!
//! [`board::start`] runs everything except for the program: the executor, the network and the time driver. It reads the
//! arguments from QEMU, and ends QEMU with the exit code of the program.

#![no_std]

pub mod arguments;
pub mod board;
mod executor;
mod lan9118;
mod registers;
pub mod stack;
mod time_driver;

/// Ends the program with this exit code of QEMU.
pub fn exit(code: i32) -> ! {
    semihosting::process::exit(code)
}
