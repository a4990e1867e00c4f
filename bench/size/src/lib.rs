//! A machine that does not exist: datagrams come and go through registers that only the compiler believes in.

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
        // SAFETY: nobody defines it, so nothing that calls it links.
        unsafe { a_panic_can_be_reached() }
    }
    #[cfg(not(feature = "no-panic"))]
    loop {
        core::hint::spin_loop();
    }
}

fn read() -> u32 {
    // SAFETY: never run.
    unsafe { (DEVICE as *const u32).read_volatile() }
}

fn write(value: u32) {
    // SAFETY: never run.
    unsafe { (DEVICE as *mut u32).write_volatile(value) }
}

/// The time.
#[must_use]
pub fn now() -> Instant {
    Instant::from_micros(read().into())
}

/// 32 bytes that nobody could guess.
#[must_use]
pub fn entropy() -> [u8; 32] {
    [read() as u8; 32]
}

/// Where everybody is.
#[must_use]
pub fn address() -> SocketAddr {
    (read().to_be_bytes(), read() as u16).into()
}

/// A datagram that arrived, of any length and content.
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
