//! The UDP socket of one client, connected to its game server.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::ControlFlow;
use std::task::Poll;

use tokio::net::UdpSocket;
use tracing::warn;

use crate::config::Limits;
use crate::session::{FromServer, Sending};

/// The minimum size of the receive buffer, which is more than RakNet sends.
const RECEIVE_MIN: usize = 2048;

/// See the module.
#[derive(Debug)]
pub(crate) struct ServerSocket {
    socket: UdpSocket,
    /// One byte longer than the limit, to detect truncated datagrams.
    buffer: Box<[u8]>,
}

impl ServerSocket {
    /// A new socket on a free port, connected so that it receives only from `server`.
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

    /// Sends one datagram; pending while the socket is full.
    pub(crate) fn try_send(&self, datagram: &[u8]) -> Poll<Sending> {
        match self.socket.try_send(datagram) {
            Ok(_) => Poll::Ready(Sending::Sent),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Poll::Pending,
            Err(error) if is_temporary(error.kind()) => Poll::Ready(Sending::Refused),
            Err(error) => {
                warn!(%error, "cannot send to the game server");
                Poll::Ready(Sending::Failed)
            }
        }
    }

    /// Passes one received datagram or error to `handle`; breaks if there is none.
    pub(crate) fn try_recv(&mut self, handle: impl FnOnce(FromServer<'_>)) -> ControlFlow<()> {
        let received = self.socket.try_recv(&mut self.buffer);
        let input = match received {
            Ok(len) if len == self.buffer.len() => FromServer::Oversized,
            Ok(len) => FromServer::Datagram(&self.buffer[..len]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return ControlFlow::Break(());
            }
            Err(error) if is_truncation(&error) => FromServer::Oversized,
            Err(error) if is_temporary(error.kind()) => FromServer::Unreachable,
            Err(error) => {
                warn!(%error, "cannot receive from the game server");
                FromServer::Failed
            }
        };
        handle(input);
        ControlFlow::Continue(())
    }
}

/// Whether an error is about the path or the other end and not about the socket.
const fn is_temporary(kind: io::ErrorKind) -> bool {
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

/// Windows reports a truncated datagram as an error (WSAEMSGSIZE).
fn is_truncation(error: &io::Error) -> bool {
    cfg!(windows) && error.raw_os_error() == Some(10040)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unreachable_server_does_not_end_a_session_but_a_broken_socket_does() {
        assert!(is_temporary(io::ErrorKind::ConnectionRefused));
        assert!(is_temporary(io::ErrorKind::HostUnreachable));
        assert!(!is_temporary(io::ErrorKind::NotConnected));
        assert!(!is_temporary(io::ErrorKind::InvalidInput));
    }

    #[tokio::test]
    async fn only_datagrams_of_the_server_are_received() {
        let server = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let other = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let limits = Limits::default();
        let mut socket = ServerSocket::connect(server.local_addr().unwrap(), &limits).await.unwrap();
        let port = socket.socket.local_addr().unwrap().port();
        other.send_to(b"other", ("127.0.0.1", port)).await.unwrap();
        server.send_to(b"server", ("127.0.0.1", port)).await.unwrap();
        let mut received = Vec::new();
        while received.is_empty() {
            socket.readable().await.unwrap();
            let _ = socket.try_recv(|input| received.push(format!("{input:?}")));
        }
        assert_eq!(received, [format!("{:?}", FromServer::Datagram(b"server"))]);
    }
}
