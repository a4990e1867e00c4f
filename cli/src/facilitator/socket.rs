//! A socket in addition to the one of the endpoint.

use std::io;
use std::net::SocketAddr;

use rakwire_udp::{MAX_DATAGRAM, allow_fragmentation, canonical, route, send_datagram};
use tokio::net::UdpSocket;

/// A buffer that is one byte longer than the longest datagram, to detect oversized ones.
pub(super) type Buffer = [u8; MAX_DATAGRAM + 1];

/// An empty buffer.
pub(super) const EMPTY: Buffer = [0; MAX_DATAGRAM + 1];

/// A socket with datagrams that routers may fragment, like the one of the endpoint: both peers may send larger ones
/// than the path from here carries in one piece.
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

    /// Receives the next datagram, and the address of its sender as the endpoint knows it.
    pub(super) async fn receive<'b>(&self, buffer: &'b mut Buffer) -> (SocketAddr, &'b [u8]) {
        loop {
            // The error concerns a datagram sent earlier, to another port.
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
