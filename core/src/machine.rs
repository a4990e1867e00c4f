//! The interface of all sans-IO state machines of the core, and parsing of addresses with an interface name.

use core::net::SocketAddr;

use crate::time::Instant;

/// An outgoing datagram.
///
/// ```
/// use std::net::UdpSocket;
/// use rakwire::Transmit;
///
/// fn send(socket: &UdpSocket, transmit: &Transmit<'_>) -> std::io::Result<usize> {
///     socket.send_to(transmit.payload, transmit.to)
/// }
/// # let receiver = UdpSocket::bind("127.0.0.1:0")?;
/// # let transmit = Transmit { to: receiver.local_addr()?, payload: b"hello" };
/// # assert_eq!(send(&UdpSocket::bind("127.0.0.1:0")?, &transmit)?, 5);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a datagram that is not sent is lost"]
pub struct Transmit<'b> {
    /// The destination address.
    pub to: SocketAddr,
    /// The datagram, in the caller's buffer.
    pub payload: &'b [u8],
}

/// The interface of a sans-IO state machine to drivers and simulators: datagrams and time, in and out.
///
/// Events are not included, because each protocol has its own.
///
/// ```
/// use rakwire::{Instant, Machine};
///
/// fn drain(machine: &mut impl Machine, now: Instant) -> usize {
///     let mut buffer = [0; 1500];
///     let mut datagrams = 0;
///     while machine.poll_transmit(now, &mut buffer).is_some() {
///         datagrams += 1;
///     }
///     datagrams
/// }
/// # use rakwire::raknet::{Config, Peer, Resources};
/// # let mut resources = Resources::<1, 32, 128>::new();
/// # let mut peer = Peer::new(&mut resources, Config::new([7; 32]));
/// # peer.connect(Instant::ZERO, "127.0.0.1:19132".parse()?)?;
/// # assert_eq!(drain(&mut peer, Instant::ZERO), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Machine {
    /// Handles a datagram received from `from` at `now`.
    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, datagram: &[u8]);

    /// Performs the work that is due at `now`.
    fn handle_timeout(&mut self, now: Instant);

    /// Writes the next datagram to send at `now` into `buffer`; returns `None` if there is none.
    fn poll_transmit<'b>(&mut self, now: Instant, buffer: &'b mut [u8]) -> Option<Transmit<'b>>;

    /// Returns when to call `handle_timeout` and `poll_transmit` next.
    ///
    /// A time in the past means immediately; `None` means no deadline.
    fn poll_timeout(&self) -> Option<Instant>;
}

/// Splits `[address%interface]:port` into the text in brackets and the port; returns `None` for any other text.
///
/// Link-local addresses are ambiguous without their interface (RFC 4007, section 11). Only the operating system can
/// map an interface name to its index: pass the text in brackets to its resolver as a host name.
///
/// ```
/// assert_eq!(rakwire::split_zoned_host("[fe80::1%eth0]:19132"), Some(("fe80::1%eth0", 19_132)));
/// assert_eq!(rakwire::split_zoned_host("[fe80::1]:19132"), None);
/// ```
#[must_use]
pub fn split_zoned_host(text: &str) -> Option<(&str, u16)> {
    let (host, port) = text.strip_prefix('[')?.split_once("]:")?;
    let (address, interface) = host.split_once('%')?;
    let is_host = address.contains(':') && !interface.is_empty();
    is_host.then_some((host, port.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_zoned_host_requires_an_interface_and_a_port() {
        assert_eq!(split_zoned_host("[fe80::1%2]:1"), Some(("fe80::1%2", 1)));
        for other in [
            "",
            "[",
            "[]:1",
            "[%]:1",
            "[fe80::1%]:1",
            "[%eth0]:1",
            "fe80::1%eth0",
            "[fe80::1%eth0]",
            "[fe80::1%eth0]:",
            "[fe80::1%eth0]:65536",
            "[fe80::1%eth0]:x",
            "192.0.2.1:1",
            "host:1",
        ] {
            assert_eq!(split_zoned_host(other), None, "{other}");
        }
    }
}
