//! A UDP socket that receives and sends several datagrams per call, from and to anybody.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use quinn_udp::{Transmit, UdpSockRef, UdpSocketState};
use rakwire_udp::{
    ALWAYS_FITS, allow_fragmentation, forbid_fragmentation, fragmenting_state, route, state_without_times,
};
use socket2::SockRef;
use tokio::net::UdpSocket;

use super::path_mtu::send_datagram;
use super::receive::{Received, try_receive};

/// The longest that one call sends.
const LONGEST: usize = 65_507;
/// The size that a socket of many peers requests for the system's buffer in each direction, in bytes.
const SYSTEM_BUFFER: usize = 4 << 20;

/// See the module.
#[derive(Debug)]
pub(crate) struct BatchSocket {
    socket: UdpSocket,
    state: UdpSocketState,
    local: SocketAddr,
    /// Whether QUIC sends at the same port, which must not be fragmented.
    is_beside_quic: bool,
    /// Locked while fragmentation is allowed, and while QUIC sends: the option is one of the socket, not of a datagram.
    fragmentation: Mutex<()>,
    /// How many buffers the next call receives into.
    expected: AtomicUsize,
}

impl BatchSocket {
    pub(crate) fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = std::net::UdpSocket::bind(address)?;
        socket.set_nonblocking(true)?;
        Self::new(socket)
    }

    /// Over a socket that does not block.
    pub(crate) fn new(socket: std::net::UdpSocket) -> io::Result<Self> {
        let state = fragmenting_state(&socket)?;
        Self::with_state(socket, state, false)
    }

    /// Over a socket that does not block and through which QUIC sends, too.
    ///
    /// QUIC has a quinn-udp of its own (0.5, beside 0.6 here), with room for 88 bytes that the system says of a datagram. The time of its arrival,
    /// for which 0.6 asks the system, does not fit in beside the address and the mark of congestion of IPv6: the last is cut off, and a debug build
    /// aborts where quinn-udp asserts its length, at the first datagram of a socket at `[::]`. So the times are left out.
    pub(crate) fn beside_quic(socket: std::net::UdpSocket) -> io::Result<Self> {
        let state = state_without_times(&socket)?;
        Self::with_state(socket, state, true)
    }

    fn with_state(
        socket: std::net::UdpSocket,
        state: UdpSocketState,
        is_beside_quic: bool,
    ) -> io::Result<Self> {
        let (local, expected) = (socket.local_addr()?, AtomicUsize::new(1));
        let (socket, fragmentation) = (UdpSocket::from_std(socket)?, Mutex::default());
        Ok(Self { socket, state, local, is_beside_quic, fragmentation, expected })
    }

    /// Asks the system for large buffers, for a socket that has many peers. It may limit them; any size works.
    pub(crate) fn with_large_buffers(self) -> Self {
        let _ = self.state.set_recv_buffer_size(UdpSockRef::from(&self.socket), SYSTEM_BUFFER);
        let _ = self.state.set_send_buffer_size(UdpSockRef::from(&self.socket), SYSTEM_BUFFER);
        self
    }

    /// The same socket once more.
    pub(crate) fn try_clone(&self) -> io::Result<std::net::UdpSocket> {
        SockRef::from(&self.socket).try_clone().map(Into::into)
    }

    pub(crate) const fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Waits until there may be datagrams.
    pub(crate) async fn readable(&self) -> io::Result<()> {
        self.socket.readable().await
    }

    /// Passes on what one call receives.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when there is nothing; others may be about a datagram that was sent before.
    pub(crate) fn try_receive<T>(&self, handle: impl FnOnce(Received<'_>) -> T) -> io::Result<T> {
        let mut expected = self.expected.load(Ordering::Relaxed);
        let result = try_receive(&self.socket, &self.state, &mut expected, handle);
        self.expected.store(expected, Ordering::Relaxed);
        result
    }

    /// Sends datagrams that stand behind each other, each `stride` bytes long except the last one. What the system does not
    /// take at once is lost, as on any path; returns how many datagrams that are.
    pub(crate) fn send(&self, to: SocketAddr, bytes: &[u8], stride: usize) -> u64 {
        let stride = stride.max(1);
        if !self.is_beside_quic || stride <= ALWAYS_FITS {
            return self.send_all(to, bytes, stride);
        }
        let _only = self.keep_fragmentation();
        allow_fragmentation(&self.socket);
        let lost = self.send_all(to, bytes, stride);
        forbid_fragmentation(&self.socket);
        lost
    }

    /// Prevents `send` from allowing fragmentation as long as the guard exists, for QUIC at the same port.
    pub(super) fn keep_fragmentation(&self) -> MutexGuard<'_, ()> {
        self.fragmentation.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send_all(&self, to: SocketAddr, bytes: &[u8], stride: usize) -> u64 {
        let count = self.state.max_gso_segments().min(LONGEST / stride).max(1);
        bytes.chunks(stride * count).map(|batch| self.send_batch(to, batch, stride)).sum()
    }

    fn send_batch(&self, to: SocketAddr, batch: &[u8], stride: usize) -> u64 {
        // Some paths take no batches: then each datagram goes alone.
        if batch.len() > stride && self.send_once(to, batch, Some(stride)) {
            return 0;
        }
        batch.chunks(stride).map(|datagram| u64::from(!self.send_once(to, datagram, None))).sum()
    }

    /// Not through tokio, whose socket would have to be asked whether it is writable before its first datagram.
    fn send_once(&self, to: SocketAddr, contents: &[u8], segment_size: Option<usize>) -> bool {
        let destination = route(self.local, to);
        let send = |contents: &[u8]| {
            let transmit = Transmit { destination, ecn: None, contents, segment_size, src_ip: None };
            self.state.try_send(UdpSockRef::from(&self.socket), &transmit)
        };
        send_datagram(&self.socket, to, contents, send).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn datagrams_arrive_one_by_one_from_whoever_sent_them() {
        for address in ["127.0.0.1:0", "[::]:0"] {
            let receiver = BatchSocket::bind(address.parse().unwrap()).unwrap();
            let to = SocketAddr::from(([127, 0, 0, 1], receiver.local_addr().port()));
            let sender = BatchSocket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
            let bytes: Vec<u8> = (0..35).collect();
            assert_eq!(sender.send(to, &bytes, 10), 0);
            let mut found = Vec::new();
            while found.len() < 4 {
                receiver.readable().await.unwrap();
                let _ = receiver.try_receive(|received| {
                    for (from, bytes, stride) in received.iter() {
                        assert_eq!(from, sender.local_addr());
                        found.extend(bytes.chunks(stride).map(<[u8]>::to_vec));
                    }
                });
            }
            assert_eq!(found, bytes.chunks(10).map(<[u8]>::to_vec).collect::<Vec<_>>());
        }
    }

    #[tokio::test]
    async fn the_socket_of_a_flow_has_the_buffers_that_the_system_gives_unasked() {
        let any = "127.0.0.1:0".parse().unwrap();
        let sizes = |socket: &BatchSocket| {
            let socket = SockRef::from(&socket.socket);
            (socket.recv_buffer_size().unwrap(), socket.send_buffer_size().unwrap())
        };
        let plain = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let plain = SockRef::from(&plain);
        let unasked = (plain.recv_buffer_size().unwrap(), plain.send_buffer_size().unwrap());
        assert_eq!(sizes(&BatchSocket::bind(any).unwrap()), unasked);
        assert!(sizes(&BatchSocket::bind(any).unwrap().with_large_buffers()) >= unasked);
    }

    #[tokio::test]
    async fn an_answer_finds_its_way_from_a_socket_for_both_versions() {
        let both = BatchSocket::bind("[::]:0".parse().unwrap()).unwrap();
        let one = BatchSocket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        assert_eq!(both.send(one.local_addr(), b"hello", 5), 0);
        one.readable().await.unwrap();
        let bytes = one.try_receive(|received| received.iter().next().map(|(_, bytes, _)| bytes.to_vec()));
        assert_eq!(bytes.unwrap().unwrap(), b"hello");
    }
}
