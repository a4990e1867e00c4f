//! A UDP proxy between a client and a server that adds latency and loss.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

use anyhow::Result;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::RcvBuf;
use rakwire::sim::Conditions;

use crate::path::{End, Path};

/// A thread that forwards datagrams between a client and a server until this handle is dropped.
#[derive(Debug)]
pub(crate) struct Proxy {
    pub(crate) port: u16,
    _path: Path,
}

impl Proxy {
    /// Forwards datagrams between one client and the server on loopback port `server`.
    pub(crate) fn start(server: u16, conditions: Conditions, seed: u64) -> Result<Self> {
        let near = bind()?;
        let far = bind()?;
        far.connect((Ipv4Addr::LOCALHOST, server))?;
        let port = near.local_addr()?.port();
        let near = Near { socket: near, client: None };
        Ok(Self { port, _path: Path::start(near, Far(far), conditions, seed) })
    }
}

fn bind() -> Result<UdpSocket> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    socket.set_nonblocking(true)?;
    // The system may limit the buffer to less; the measurement still works.
    let _ = setsockopt(&socket, RcvBuf, &(4 << 20));
    Ok(socket)
}

/// The client's end. Datagrams from the server go to the address that sent the last datagram.
struct Near {
    socket: UdpSocket,
    client: Option<SocketAddr>,
}

impl AsFd for Near {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl End for Near {
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let (length, from) = self.socket.recv_from(buffer)?;
        self.client = Some(from);
        Ok(length)
    }

    fn send(&mut self, datagram: &[u8]) -> io::Result<usize> {
        self.client.map_or(Ok(0), |client| self.socket.send_to(datagram, client))
    }
}

/// The server's end.
struct Far(UdpSocket);

impl AsFd for Far {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl End for Far {
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.recv(buffer)
    }

    fn send(&mut self, datagram: &[u8]) -> io::Result<usize> {
        self.0.send(datagram)
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn datagrams_are_forwarded_in_both_directions_with_latency() {
        let server = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let latency = Duration::from_millis(5);
        let conditions = Conditions { latency, ..Conditions::default() };
        let proxy = Proxy::start(server.local_addr().unwrap().port(), conditions, 1).unwrap();
        let client = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let began = Instant::now();
        client.send_to(b"forth", (Ipv4Addr::LOCALHOST, proxy.port)).unwrap();
        let mut buffer = [0; 16];
        let (length, from) = server.recv_from(&mut buffer).unwrap();
        assert_eq!(&buffer[..length], b"forth");
        server.send_to(b"back", from).unwrap();
        let (length, _) = client.recv_from(&mut buffer).unwrap();
        assert_eq!(&buffer[..length], b"back");
        assert!(began.elapsed() >= 2 * latency);
    }
}
