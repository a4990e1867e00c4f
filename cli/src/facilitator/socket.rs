//! A socket beside that of the endpoint.

use std::io;
use std::net::SocketAddr;

use rakwire_udp::{LONGEST_DATAGRAM, allow_fragmentation, canonical, route, send_datagram};
use tokio::net::UdpSocket;

/// Room for one datagram, and a byte more, which shows that it is too long.
pub(super) type Buffer = [u8; LONGEST_DATAGRAM + 1];

/// An empty buffer.
pub(super) const EMPTY: Buffer = [0; LONGEST_DATAGRAM + 1];

/// A socket whose datagrams routers may fragment, as those of the endpoint: both peers may send larger ones than the path from here
/// carries in one piece.
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

    /// Waits for the next datagram, and returns the address of its sender as the endpoint knows it.
    pub(super) async fn receive<'b>(&self, buffer: &'b mut Buffer) -> (SocketAddr, &'b [u8]) {
        loop {
            // An error is that of a datagram that was sent before, and of another port.
            let Ok((length, from)) = self.io.recv_from(buffer).await else { continue };
            if length <= LONGEST_DATAGRAM {
                return (canonical(from), buffer.get(..length).unwrap_or_default());
            }
        }
    }

    /// Sends a datagram. What the system does not take is lost, as any datagram may be.
    pub(super) async fn send(&self, datagram: &[u8], to: SocketAddr) {
        let to = route(self.local, to);
        if self.io.writable().await.is_ok() {
            let _ = send_datagram(&self.io, to, datagram, || self.io.try_send_to(datagram, to));
        }
    }
}
