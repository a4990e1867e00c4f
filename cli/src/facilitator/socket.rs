//! A UDP socket for a probe port or a forwarding port, in addition to the endpoint's socket.

use std::io;
use std::net::SocketAddr;

use rakwire_udp::{MAX_DATAGRAM, allow_fragmentation, canonical, route, send_datagram};
use tokio::net::UdpSocket;

/// A buffer that is one byte longer than the longest datagram, to detect oversized ones.
pub(super) type Buffer = [u8; MAX_DATAGRAM + 1];

/// An empty buffer.
pub(super) const EMPTY: Buffer = [0; MAX_DATAGRAM + 1];

/// A UDP socket for datagrams that routers may fragment, like those of the endpoint. A peer may send datagrams that
/// exceed the MTU of the path from the facilitator to the other peer.
#[derive(Debug)]
pub(super) struct Socket {
    io: UdpSocket,
    local: SocketAddr,
}

impl Socket {
    pub(super) async fn bind(address: SocketAddr) -> io::Result<Self> {
        let io = UdpSocket::bind(address).await?;
        allow_fragmentation(&io);
        let local = io.local_addr()?;
        Ok(Self { io, local })
    }

    pub(super) const fn port(&self) -> u16 {
        self.local.port()
    }

    /// Receives the next datagram, and its source address in the canonical form that the endpoint uses.
    pub(super) async fn receive<'b>(&self, buffer: &'b mut Buffer) -> (SocketAddr, &'b [u8]) {
        loop {
            // The error concerns a datagram that was sent earlier.
            let Ok((length, from)) = self.io.recv_from(buffer).await else { continue };
            if length <= MAX_DATAGRAM {
                return (canonical(from), buffer.get(..length).unwrap_or_default());
            }
        }
    }

    /// Sends a datagram. If the system refuses it, it counts as lost.
    pub(super) async fn send(&self, datagram: &[u8], to: SocketAddr) {
        let to = route(self.local, to);
        if self.io.writable().await.is_ok() {
            let _ = send_datagram(&self.io, to, datagram, || self.io.try_send_to(datagram, to));
        }
    }
}
