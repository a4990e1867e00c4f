//! An imaginary machine for programs that are built to measure their size.
//!
//! Datagrams pass through memory-mapped registers, so that the compiler cannot optimise away the code for them.

#![no_std]

use core::net::SocketAddr;

use rakwire::Instant;

const DEVICE: usize = 0x4000_0000;

#[panic_handler]
fn panic(_info: &core::panic::PanicInfo<'_>) -> ! {
    #[cfg(feature = "no-panic")]
    {
        unsafe extern "C" {
            fn a_panic_can_be_reached() -> !;
        }
        // SAFETY: the function is never called. It is not defined, so a program with this call does not link.
        unsafe { a_panic_can_be_reached() }
    }
    #[cfg(not(feature = "no-panic"))]
    loop {
        core::hint::spin_loop();
    }
}

fn read() -> u32 {
    // SAFETY: these programs are never executed.
    unsafe { (DEVICE as *const u32).read_volatile() }
}

fn write(value: u32) {
    // SAFETY: these programs are never executed.
    unsafe { (DEVICE as *mut u32).write_volatile(value) }
}

/// Returns the time.
#[must_use]
pub fn now() -> Instant {
    Instant::from_micros(read().into())
}

/// Returns 32 bytes of entropy.
#[must_use]
pub fn entropy() -> [u8; 32] {
    [read() as u8; 32]
}

/// Returns the address of the remote peer.
#[must_use]
pub fn address() -> SocketAddr {
    (read().to_be_bytes(), read() as u16).into()
}

/// Returns a received datagram of any length and content.
pub fn receive(buffer: &mut [u8]) -> &[u8] {
    let length = (read() as usize).min(buffer.len());
    for byte in buffer.iter_mut() {
        *byte = read() as u8;
    }
    #[cfg(feature = "deliberate-panic")]
    assert!(length != 7, "seven bytes are bad luck");
    buffer.get(..length).unwrap_or(&[])
}

/// Sends a datagram.
pub fn send(datagram: &[u8]) {
    datagram.iter().for_each(|byte| write((*byte).into()));
}
