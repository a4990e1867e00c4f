//! The UDP socket of one client, connected to its game server.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::ControlFlow;

use tokio::net::UdpSocket;
use tracing::warn;

use crate::config::Limits;
use crate::session::FromServer;

/// What a game server's datagram may have at least. It is more than RakNet sends, and less than costs memory.
const RECEIVE_MIN: usize = 2048;

/// What became of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SendOutcome {
    Sent,
    /// Not now.
    Blocked,
    /// Not this one.
    Refused,
    Failed,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct ServerSocket {
    socket: UdpSocket,
    /// One byte longer than what is taken, so that a datagram that was cut off shows.
    buffer: Box<[u8]>,
}

impl ServerSocket {
    /// A new socket on a free port. The system passes only what comes from `server`.
    pub(crate) async fn connect(server: SocketAddr, limits: &Limits) -> io::Result<Self> {
        let any: SocketAddr = match server {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = UdpSocket::bind(any).await?;
        socket.connect(server).await?;
        let buffer = vec![0; limits.max_datagram.max(RECEIVE_MIN) + 1].into_boxed_slice();
        Ok(Self { socket, buffer })
    }

    pub(crate) async fn readable(&self) -> io::Result<()> {
        self.socket.readable().await
    }

    pub(crate) async fn writable(&self) -> io::Result<()> {
        self.socket.writable().await
    }

    /// Sends one datagram, unless the socket is full.
    pub(crate) fn try_send(&self, datagram: &[u8]) -> SendOutcome {
        match self.socket.try_send(datagram) {
            Ok(_) => SendOutcome::Sent,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => SendOutcome::Blocked,
            Err(error) if is_passing(error.kind()) => SendOutcome::Refused,
            Err(error) => {
                warn!(%error, "cannot send to the game server");
                SendOutcome::Failed
            }
        }
    }

    /// Hands one arrived datagram or error to `handle`; breaks when there is none.
    pub(crate) fn try_recv(&mut self, handle: impl FnOnce(FromServer<'_>)) -> ControlFlow<()> {
        let received = self.socket.try_recv(&mut self.buffer);
        let input = match received {
            Ok(len) if len == self.buffer.len() => FromServer::Oversized,
            Ok(len) => FromServer::Datagram(&self.buffer[..len]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return ControlFlow::Break(());
            }
            Err(error) if is_cut_off(&error) => FromServer::Oversized,
            Err(error) if is_passing(error.kind()) => FromServer::Unreachable,
            Err(error) => {
                warn!(%error, "cannot receive from the game server");
                FromServer::Failed
            }
        };
        handle(input);
        ControlFlow::Continue(())
    }
}

/// Errors that say something about the way or the other end at this moment, and nothing about the socket.
const fn is_passing(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{
        ConnectionRefused, ConnectionReset, HostUnreachable, Interrupted, NetworkDown, NetworkUnreachable,
        OutOfMemory, PermissionDenied,
    };
    matches!(
        kind,
        ConnectionRefused
            | ConnectionReset
            | HostUnreachable
            | Interrupted
            | NetworkDown
            | NetworkUnreachable
            | OutOfMemory
            | PermissionDenied
    )
}

/// Windows reports a datagram that did not fit as an error (WSAEMSGSIZE).
fn is_cut_off(error: &io::Error) -> bool {
    cfg!(windows) && error.raw_os_error() == Some(10040)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_is_away_does_not_end_a_session_but_a_broken_socket_does() {
        assert!(is_passing(io::ErrorKind::ConnectionRefused));
        assert!(is_passing(io::ErrorKind::HostUnreachable));
        assert!(!is_passing(io::ErrorKind::NotConnected));
        assert!(!is_passing(io::ErrorKind::InvalidInput));
    }

    #[tokio::test]
    async fn only_the_server_is_heard() {
        let server = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let stranger = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let limits = Limits::default();
        let mut socket = ServerSocket::connect(server.local_addr().unwrap(), &limits).await.unwrap();
        let port = socket.socket.local_addr().unwrap().port();
        stranger.send_to(b"stranger", ("127.0.0.1", port)).await.unwrap();
        server.send_to(b"server", ("127.0.0.1", port)).await.unwrap();
        let mut heard = Vec::new();
        while heard.is_empty() {
            socket.readable().await.unwrap();
            let _ = socket.try_recv(|input| heard.push(format!("{input:?}")));
        }
        assert_eq!(heard, [format!("{:?}", FromServer::Datagram(b"server"))]);
    }
}
