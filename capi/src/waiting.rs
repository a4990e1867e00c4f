//! Waiting for datagrams, in the library or in the program's own event loop.

use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::codes::{Failure, RAKWIRE_ERROR_SYSTEM, RAKWIRE_OK, guard};
use crate::convert::{duration, micros};
use crate::memory::{check_out, store};
use crate::registry;
use crate::types::{RAKWIRE_FOREVER, RakwireEndpoint, RakwireResult};

/// Waits until a datagram arrives or a timer expires, for at most `timeout_ms` (RAKWIRE_FOREVER: no limit). Returns 1 if
/// rakwire_update() has work, or 0 after the time limit or a signal. Poll all events first.
#[unsafe(no_mangle)]
pub extern "C" fn rakwire_wait(endpoint: RakwireEndpoint, timeout_ms: u32) -> RakwireResult {
    guard(|| {
        registry::with(endpoint, |endpoint| {
            let limit = (timeout_ms != RAKWIRE_FOREVER).then(|| duration(timeout_ms));
            let timer = endpoint.polled.timeout();
            let wait = [limit, timer].into_iter().flatten().min();
            let is_readable = wait_for(endpoint.polled.socket(), wait)?;
            let is_due = timer.is_some_and(|timer| limit.is_none_or(|limit| timer <= limit));
            Ok((is_readable.unwrap_or(false) || is_readable.is_some() && is_due).into())
        })
    })
}

/// Waits for a datagram. Returns true if a datagram arrived, false after `limit`, and `None` after a signal.
fn wait_for(socket: &std::net::UdpSocket, limit: Option<Duration>) -> Result<Option<bool>, Failure> {
    // A duration that the operating system cannot represent means no limit.
    let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
    let mut sockets = [PollFd::new(socket, PollFlags::IN)];
    match poll(&mut sockets, limit.as_ref()) {
        Ok(ready) => Ok(Some(ready > 0)),
        Err(Errno::INTR) => Ok(None),
        Err(error) => Err(Failure::with(RAKWIRE_ERROR_SYSTEM, error)),
    }
}

/// Stores the time in microseconds until the next rakwire_update() if no datagram arrives. Returns 1, or 0 if no timer is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rakwire_timeout(endpoint: RakwireEndpoint, microseconds: *mut u64) -> RakwireResult {
    guard(|| {
        check_out(microseconds)?;
        let timeout = registry::with(endpoint, |endpoint| Ok(endpoint.polled.timeout()))?;
        // SAFETY: the caller passes a writable number, which was checked above.
        unsafe { store(microseconds, timeout.map_or(u64::MAX, micros)) }?;
        Ok(timeout.is_some().into())
    })
}

/// Stores the socket of the endpoint for poll(), select() or similar: a file descriptor, or a SOCKET on Windows. Only the
/// library may read from, write to or close it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rakwire_socket(endpoint: RakwireEndpoint, socket: *mut u64) -> RakwireResult {
    guard(|| {
        check_out(socket)?;
        let own = registry::with(endpoint, |endpoint| Ok(handle(endpoint.polled.socket())))?;
        // SAFETY: the caller passes a writable number, which was checked above.
        unsafe { store(socket, own) }?;
        Ok(RAKWIRE_OK)
    })
}

#[cfg(unix)]
fn handle(socket: &std::net::UdpSocket) -> u64 {
    use std::os::fd::AsRawFd;
    // File descriptors are not negative.
    socket.as_raw_fd().unsigned_abs().into()
}

#[cfg(windows)]
fn handle(socket: &std::net::UdpSocket) -> u64 {
    use std::os::windows::io::AsRawSocket;
    socket.as_raw_socket()
}
