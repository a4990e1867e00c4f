//! UDP sockets that send and receive several datagrams per call, to and from any peer. All sockets of a thread share
//! their buffers. This module also sends the MTU probes that the relay forwards (docs/raknet.md#path-mtu).
//!
//! Datagrams in a socket's receive buffer are read before timers fire, so that a pause of the process or the machine
//! does not look like silence of the peers.

use std::cell::RefCell;
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use quinn_udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSockRef, UdpSocketState};
use rakwire::wire::offline::is_mtu_probe;
use rakwire_udp::{
    Descriptor, IPV6_MIN_MTU_PAYLOAD, allow_fragmentation, forbid_fragmentation, fragmenting_state,
    is_too_large, route, state_without_timestamps,
};
use socket2::SockRef;
use tokio::io::Interest;
use tokio::net::UdpSocket;

use crate::addresses::canonical;

/// The maximum bytes of one send call.
const LONGEST: usize = 65_507;
/// The requested size of the send and receive buffers of a socket with many peers, in bytes.
const SYSTEM_BUFFER: usize = 4 << 20;

/// A UDP socket that sends and receives several datagrams per call, to and from any peer.
#[derive(Debug)]
pub(crate) struct BatchSocket {
    socket: UdpSocket,
    state: UdpSocketState,
    local: SocketAddr,
    /// True if QUIC uses the same port. QUIC packets must not be fragmented.
    is_beside_quic: bool,
    /// Held while fragmentation is allowed, and while QUIC sends, because the option applies to the socket and not to a
    /// datagram.
    fragmentation: Mutex<()>,
    /// The number of buffers to prepare for the next receive call.
    expected: AtomicUsize,
}

impl BatchSocket {
    pub(crate) fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = std::net::UdpSocket::bind(address)?;
        socket.set_nonblocking(true)?;
        Self::new(socket)
    }

    /// Wraps a non-blocking socket.
    pub(crate) fn new(socket: std::net::UdpSocket) -> io::Result<Self> {
        let state = fragmenting_state(&socket)?;
        Self::with_state(socket, state, false)
    }

    /// Wraps a non-blocking socket that QUIC also uses.
    ///
    /// QUIC uses quinn-udp 0.5, with 88 bytes of ancillary data per datagram; this crate uses quinn-udp 0.6. The
    /// arrival time, which 0.6 requests, does not fit next to the IPv6 address and the ECN mark. The mark would be cut
    /// off, and debug builds would abort on an assertion in quinn-udp at the first datagram of a socket bound to
    /// `[::]`. Timestamps are therefore disabled.
    pub(crate) fn beside_quic(socket: std::net::UdpSocket) -> io::Result<Self> {
        let state = state_without_timestamps(&socket)?;
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

    /// Requests large system buffers, for a socket with many peers. If the system grants less, the socket still works.
    pub(crate) fn with_large_buffers(self) -> Self {
        let _ = self.state.set_recv_buffer_size(UdpSockRef::from(&self.socket), SYSTEM_BUFFER);
        let _ = self.state.set_send_buffer_size(UdpSockRef::from(&self.socket), SYSTEM_BUFFER);
        self
    }

    /// Duplicates the socket.
    pub(crate) fn try_clone(&self) -> io::Result<std::net::UdpSocket> {
        SockRef::from(&self.socket).try_clone().map(Into::into)
    }

    pub(crate) const fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Waits until datagrams may be available.
    pub(crate) async fn readable(&self) -> io::Result<()> {
        self.socket.readable().await
    }

    /// Receives one batch and passes it to `handle`.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if there is nothing to receive; other errors may concern a datagram sent earlier.
    pub(crate) fn try_receive<T>(&self, handle: impl FnOnce(Received<'_>) -> T) -> io::Result<T> {
        let mut expected = self.expected.load(Ordering::Relaxed);
        let result = try_receive(&self.socket, &self.state, &mut expected, handle);
        self.expected.store(expected, Ordering::Relaxed);
        result
    }

    /// Sends contiguous datagrams, each `stride` bytes long except the last one.
    ///
    /// Datagrams that the system does not accept immediately are lost, as on any path. Returns their number.
    pub(crate) fn send(&self, to: SocketAddr, bytes: &[u8], stride: usize) -> u64 {
        let stride = stride.max(1);
        if !self.is_beside_quic || stride <= IPV6_MIN_MTU_PAYLOAD {
            return self.send_all(to, bytes, stride);
        }
        let _only = self.keep_fragmentation();
        allow_fragmentation(&self.socket);
        let lost = self.send_all(to, bytes, stride);
        forbid_fragmentation(&self.socket);
        lost
    }

    /// Prevents `send` from allowing fragmentation while the guard exists, for QUIC at the same port.
    pub(super) fn keep_fragmentation(&self) -> MutexGuard<'_, ()> {
        self.fragmentation.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send_all(&self, to: SocketAddr, bytes: &[u8], stride: usize) -> u64 {
        let count = self.state.max_gso_segments().min(LONGEST / stride).max(1);
        bytes.chunks(stride * count).map(|batch| self.send_batch(to, batch, stride)).sum()
    }

    fn send_batch(&self, to: SocketAddr, batch: &[u8], stride: usize) -> u64 {
        // Some paths do not support segmentation: each datagram is then sent separately.
        if batch.len() > stride && self.send_once(to, batch, Some(stride)) {
            return 0;
        }
        batch.chunks(stride).map(|datagram| u64::from(!self.send_once(to, datagram, None))).sum()
    }

    /// Sends without tokio. Its socket would have to be polled for writability before the first datagram.
    fn send_once(&self, to: SocketAddr, contents: &[u8], segment_size: Option<usize>) -> bool {
        let destination = route(self.local, to);
        let send = |contents: &[u8]| {
            let transmit = Transmit { destination, ecn: None, contents, segment_size, src_ip: None };
            self.state.try_send(UdpSockRef::from(&self.socket), &transmit)
        };
        send_datagram(&self.socket, to, contents, send).is_ok()
    }
}

/// The size of a receive buffer. The system may return several datagrams of one sender in it.
const BUFFER: usize = 65_535;

thread_local! {
    /// Shared by the sockets of a thread, because idle sockets need no buffer.
    static BUFFERS: RefCell<Buffers> = RefCell::new(Buffers::new());
}

struct Buffers {
    bytes: Box<[u8]>,
    metas: [RecvMeta; BATCH_SIZE],
}

impl Buffers {
    fn new() -> Self {
        // The system commits these pages on first use.
        Self { bytes: vec![0; BUFFER * BATCH_SIZE].into(), metas: [RecvMeta::default(); BATCH_SIZE] }
    }

    fn receive(&mut self, count: usize, socket: UdpSockRef<'_>, state: &UdpSocketState) -> io::Result<usize> {
        let mut chunks = self.bytes.chunks_mut(BUFFER);
        let mut slices: [IoSliceMut<'_>; BATCH_SIZE] =
            std::array::from_fn(|_| IoSliceMut::new(chunks.next().unwrap_or_default()));
        // quinn-udp 0.6 reserves space for all ancillary data that it requests. The quinn-udp 0.5 of QUIC does not, and
        // would abort a debug build: see `BatchSocket::beside_quic`.
        state.recv(socket, &mut slices[..count], &mut self.metas[..count])
    }
}

/// The result of one receive call.
#[derive(Clone, Copy)]
pub(crate) struct Received<'b> {
    bytes: &'b [u8],
    metas: &'b [RecvMeta],
}

impl<'b> Received<'b> {
    /// Returns runs of contiguous datagrams: the sender, the bytes, and the length of each datagram except the last.
    pub(crate) fn iter(self) -> impl Iterator<Item = (SocketAddr, &'b [u8], usize)> {
        self.metas.iter().zip(self.bytes.chunks(BUFFER)).map(|(meta, buffer)| {
            let bytes = buffer.get(..meta.len).unwrap_or(buffer);
            (canonical(meta.addr), bytes, meta.stride)
        })
    }
}

/// Receives one batch and passes it to `handle`. `expected` is the number of buffers to prepare, and is adapted for the
/// next call, because preparing all buffers costs more than a datagram.
///
/// # Errors
/// [`io::ErrorKind::WouldBlock`] if there is nothing to receive; other errors may concern a datagram sent earlier.
pub(crate) fn try_receive<T>(
    socket: &UdpSocket,
    state: &UdpSocketState,
    expected: &mut usize,
    handle: impl FnOnce(Received<'_>) -> T,
) -> io::Result<T> {
    BUFFERS.with_borrow_mut(|buffers| {
        let call = || buffers.receive(*expected, UdpSockRef::from(socket), state);
        let result = socket.try_io(Interest::READABLE, call);
        *expected = (2 * *result.as_ref().unwrap_or(&0)).clamp(1, BATCH_SIZE);
        result.map(|count| handle(Received { bytes: &buffers.bytes, metas: &buffers.metas[..count] }))
    })
}

/// The sizes in bytes to which an oversized probe is cut: those of the MTUs that clients try.
const PROBES: [usize; 4] = [1_372, 1_232, 1_172, 548];

/// Sends a datagram. An MTU probe is never fragmented. A probe that exceeds the known path MTU is cut to the next
/// smaller size that clients try.
pub(super) fn send_datagram(
    socket: &impl Descriptor,
    to: SocketAddr,
    datagram: &[u8],
    mut send: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    rakwire_udp::send_datagram(socket, to, datagram, || {
        let mut sent = send(datagram);
        if !is_mtu_probe(datagram) {
            return sent;
        }
        for length in PROBES {
            match datagram.get(..length) {
                Some(shorter) if sent.as_ref().is_err_and(is_too_large) => sent = send(shorter),
                Some(_) | None => {}
            }
        }
        sent
    })
}

/// The delay of a timer from which it counts as late, because the process did not run. A busy relay is late by only a
/// few milliseconds.
const LATE: Duration = Duration::from_millis(250);
/// The time that the receiving tasks get to catch up: many times longer than it takes to empty the sockets' receive
/// buffers.
const TIME: Duration = Duration::from_millis(100);

/// Postpones a late timer once, until queued input has been read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CatchUp(Option<Instant>);

impl CatchUp {
    /// Returns true if the timer due at `due` may fire now.
    pub(crate) fn is_over(&mut self, due: Instant, now: Instant) -> bool {
        match self.0 {
            Some(until) if now < until => false,
            // The deadline is after the postponed time, so it has not been postponed itself: reading moved it, and
            // another pause followed.
            Some(until) if due <= until => {
                self.0 = None;
                true
            }
            Some(_) | None => {
                let is_late = now.saturating_duration_since(due) >= LATE;
                self.0 = is_late.then(|| now + TIME);
                !is_late
            }
        }
    }

    /// Returns the time at which to check the timer due at `due` again.
    pub(crate) fn postponed(&self, due: Instant) -> Instant {
        self.0.map_or(due, |until| until.max(due))
    }
}

/// A path for tests that silently drops datagrams longer than its MTU.
#[cfg(test)]
pub(super) mod narrow_path {
    use std::net::SocketAddr;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use rakwire::wire::IP_UDP_OVERHEAD;
    use rakwire_native::endpoint::{Endpoint, Options};
    use rakwire_native::raknet::{Connection, Delivery, RakNet};
    use tokio::net::UdpSocket;

    /// The path of one client to a server. It exists until the runtime of the test ends.
    pub(in crate::io) struct NarrowPath {
        /// The address of the client's end of the path. The client uses it in place of the server's address.
        pub(in crate::io) address: SocketAddr,
        longest: Arc<AtomicUsize>,
    }

    impl NarrowPath {
        /// Creates a path without an MTU limit.
        pub(in crate::io) async fn to(server: SocketAddr) -> Self {
            let near = UdpSocket::bind("127.0.0.1:0").await.unwrap();
            let far = UdpSocket::bind("127.0.0.1:0").await.unwrap();
            far.connect(server).await.unwrap();
            let path =
                Self { address: near.local_addr().unwrap(), longest: Arc::new(AtomicUsize::new(usize::MAX)) };
            tokio::spawn(carry(near, far, Arc::clone(&path.longest)));
            path
        }

        /// Limits the length of the IP packets that pass.
        pub(in crate::io) fn narrow(&self, longest: usize) {
            self.longest.store(longest, Ordering::Relaxed);
        }
    }

    async fn carry(near: UdpSocket, far: UdpSocket, longest: Arc<AtomicUsize>) {
        let (mut client, mut to_server, mut to_client) = (None, [0; 2_048], [0; 2_048]);
        let passes = |length| length + usize::from(IP_UDP_OVERHEAD) <= longest.load(Ordering::Relaxed);
        loop {
            tokio::select! {
                Ok((length, from)) = near.recv_from(&mut to_server) => {
                    client = Some(from);
                    if passes(length) {
                        far.send(&to_server[..length]).await.unwrap();
                    }
                }
                Ok(length) = far.recv(&mut to_client) => {
                    if let Some(client) = client.filter(|_| passes(length)) {
                        near.send_to(&to_client[..length], client).await.unwrap();
                    }
                }
            }
        }
    }

    /// Connects a RakNet client to this address.
    pub(in crate::io) async fn connect(server: SocketAddr) -> Connection {
        let client = Endpoint::bind("127.0.0.1:0", Options::<RakNet>::client().unwrap()).await.unwrap();
        client.connect(server).await.unwrap()
    }

    /// Sends large messages one after the other to a server that echoes them, and returns the MTU of the connection
    /// afterwards. Nearly all datagrams have the length of the MTU.
    pub(in crate::io) async fn echo_large(connection: &Connection) -> usize {
        for number in 0..5 {
            let message = vec![0xFE - number; 50_000];
            connection.send(&message, Delivery::RELIABLE_ORDERED).await.unwrap();
            let echo = connection.recv().await;
            let echo = echo.unwrap_or_else(|| panic!("no echo: {:?}", connection.closed_reason()));
            assert!(echo.bytes == message, "the echo differs from message {number}");
        }
        connection.mtu().unwrap().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn datagrams_arrive_separately_with_their_senders() {
        for (from, to) in [
            ("127.0.0.1:0", "127.0.0.1:0"),
            ("127.0.0.1:0", "[::]:0"),
            ("[::1]:0", "[::1]:0"),
            ("[::1]:0", "[::]:0"),
        ] {
            let [sender, receiver] =
                [from, to].map(|address| BatchSocket::bind(address.parse().unwrap()).unwrap());
            let to = SocketAddr::new(sender.local_addr().ip(), receiver.local_addr().port());
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
    async fn only_a_socket_with_many_peers_requests_large_system_buffers() {
        let any = "127.0.0.1:0".parse().unwrap();
        let sizes =
            |socket: SockRef<'_>| (socket.recv_buffer_size().unwrap(), socket.send_buffer_size().unwrap());
        let plain = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let of_a_flow = BatchSocket::bind(any).unwrap();
        assert_eq!(sizes(SockRef::from(&of_a_flow.socket)), sizes(SockRef::from(&plain)));
        // The system may grant less than requested.
        SockRef::from(&plain).set_recv_buffer_size(SYSTEM_BUFFER).unwrap();
        SockRef::from(&plain).set_send_buffer_size(SYSTEM_BUFFER).unwrap();
        let of_many = BatchSocket::bind(any).unwrap().with_large_buffers();
        assert_eq!(sizes(SockRef::from(&of_many.socket)), sizes(SockRef::from(&plain)));
    }

    #[tokio::test]
    async fn a_dual_stack_socket_sends_to_addresses_of_both_families() {
        let both = BatchSocket::bind("[::]:0".parse().unwrap()).unwrap();
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let one = BatchSocket::bind(address.parse().unwrap()).unwrap();
            assert_eq!(both.send(one.local_addr(), b"hello", 5), 0);
            one.readable().await.unwrap();
            let received = one.try_receive(|received| {
                received.iter().map(|(from, bytes, _)| (from, bytes.to_vec())).collect::<Vec<_>>()
            });
            let from = SocketAddr::new(one.local_addr().ip(), both.local_addr().port());
            assert_eq!(received.unwrap(), [(from, b"hello".to_vec())]);
        }
    }

    #[test]
    fn only_a_late_timer_is_postponed_and_only_once() {
        let due = Instant::now();
        let mut catch_up = CatchUp::default();
        assert!(catch_up.is_over(due, due + LATE / 2));
        let late = due + LATE;
        assert!(!catch_up.is_over(due, late));
        assert_eq!(catch_up.postponed(due), late + TIME);
        assert!(!catch_up.is_over(due, late + TIME / 2));
        assert!(catch_up.is_over(due, late + TIME));
        assert_eq!(catch_up.postponed(due), due);
    }

    #[test]
    fn a_second_pause_postpones_timers_again() {
        let due = Instant::now();
        let mut catch_up = CatchUp::default();
        assert!(!catch_up.is_over(due, due + LATE));
        // Input that was read during the pause has moved the deadline, and the timer is late again.
        let moved = due + Duration::from_secs(10);
        let late = moved + LATE;
        assert!(!catch_up.is_over(moved, late));
        assert_eq!(catch_up.postponed(moved), late + TIME);
        assert!(catch_up.is_over(moved, late + TIME));
        // A timer that fires on time is not postponed.
        assert!(!catch_up.is_over(due, due + LATE));
        assert!(catch_up.is_over(moved, moved));
    }
}
