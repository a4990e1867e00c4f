//! UDP sockets that receive and send several datagrams per call: from and to anybody, into buffers that all sockets of a thread share, and
//! with the probes of the MTU that the relay passes on (docs/raknet.md#path-mtu).
//!
//! What has arrived is read before time passes: after a pause of the process or of its machine, whoever kept sending is not silent.

use std::cell::RefCell;
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use quinn_udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSockRef, UdpSocketState};
use rakwire::wire::offline::is_mtu_probe;
use rakwire_udp::{
    ALWAYS_FITS, Descriptor, allow_fragmentation, forbid_fragmentation, fragmenting_state, is_too_large,
    route, state_without_times,
};
use socket2::SockRef;
use tokio::io::Interest;
use tokio::net::UdpSocket;

use crate::addresses::canonical;

/// The longest that one call sends.
const LONGEST: usize = 65_507;
/// The size that a socket of many peers requests for the system's buffer in each direction, in bytes.
const SYSTEM_BUFFER: usize = 4 << 20;

/// A UDP socket that receives and sends several datagrams per call, from and to anybody.
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

/// The size of a receive buffer: the system returns several datagrams of one sender in it.
const BUFFER: usize = 65_535;

thread_local! {
    /// An idle socket needs none of them.
    static BUFFERS: RefCell<Buffers> = RefCell::new(Buffers::new());
}

struct Buffers {
    bytes: Box<[u8]>,
    metas: [RecvMeta; BATCH_SIZE],
}

impl Buffers {
    fn new() -> Self {
        // The system gives these pages to the process as they are used for the first time.
        Self { bytes: vec![0; BUFFER * BATCH_SIZE].into(), metas: [RecvMeta::default(); BATCH_SIZE] }
    }

    fn receive(&mut self, count: usize, socket: UdpSockRef<'_>, state: &UdpSocketState) -> io::Result<usize> {
        let mut chunks = self.bytes.chunks_mut(BUFFER);
        let mut slices: [IoSliceMut<'_>; BATCH_SIZE] =
            std::array::from_fn(|_| IoSliceMut::new(chunks.next().unwrap_or_default()));
        // This quinn-udp (0.6) has room for all that it has the system say of a datagram. The one of quinn (0.5) does not, and a debug
        // build aborts in it: see `BatchSocket::beside_quic`.
        state.recv(socket, &mut slices[..count], &mut self.metas[..count])
    }
}

/// What one call received.
#[derive(Clone, Copy)]
pub(crate) struct Received<'b> {
    bytes: &'b [u8],
    metas: &'b [RecvMeta],
}

impl<'b> Received<'b> {
    /// Datagrams of one sender that stand behind each other: who sent them, their bytes, and the length of each but the last
    /// one.
    pub(crate) fn iter(self) -> impl Iterator<Item = (SocketAddr, &'b [u8], usize)> {
        self.metas.iter().zip(self.bytes.chunks(BUFFER)).map(|(meta, buffer)| {
            let bytes = buffer.get(..meta.len).unwrap_or(buffer);
            (canonical(meta.addr), bytes, meta.stride)
        })
    }
}

/// Passes on what one call receives. `expected` is how many buffers it receives into, and is changed for the next call:
/// preparing all of them costs more than a datagram.
///
/// # Errors
/// [`io::ErrorKind::WouldBlock`] when there is nothing; others may be about a datagram that was sent before.
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

/// Bytes that a probe is cut to where it is larger than the path: those of the MTUs that clients try.
const PROBES: [usize; 4] = [1_372, 1_232, 1_172, 548];

/// Sends a datagram. A probe of the MTU may not be fragmented, and is cut to the next smaller size that clients try while it is
/// known to be too large for the path.
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

/// A timer this late shows that nothing ran here: a busy relay is late by a few milliseconds.
const LATE: Duration = Duration::from_millis(250);
/// How long the tasks that read have then. It is many times what they take to empty the buffers of the system.
const TIME: Duration = Duration::from_millis(100);

/// Lets a timer that is late wait for what has to be read first, once.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CatchUp(Option<Instant>);

impl CatchUp {
    /// Whether what was due at `due` may happen now.
    pub(crate) fn is_over(&mut self, due: Instant, now: Instant) -> bool {
        match self.0 {
            Some(until) if now < until => false,
            // What came due later than that has not waited: what was read moved a deadline, and there was another pause.
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

    /// When to look again at what is due at `due`.
    pub(crate) fn postponed(&self, due: Instant) -> Instant {
        self.0.map_or(due, |until| until.max(due))
    }
}

/// A path for tests that drops datagrams that are too long for it, and tells nothing of them.
#[cfg(test)]
pub(super) mod narrow_path {
    use std::net::SocketAddr;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use rakwire::wire::IP_UDP_OVERHEAD;
    use rakwire_native::endpoint::{Endpoint, Options};
    use rakwire_native::raknet::{Connection, Delivery, RakNet};
    use tokio::net::UdpSocket;

    /// The path of one client to a server. It ends with the runtime of the test.
    pub(in crate::io) struct NarrowPath {
        /// Where it begins, which is the server to the client.
        pub(in crate::io) address: SocketAddr,
        longest: Arc<AtomicUsize>,
    }

    impl NarrowPath {
        /// A path that passes everything.
        pub(in crate::io) async fn to(server: SocketAddr) -> Self {
            let near = UdpSocket::bind("127.0.0.1:0").await.unwrap();
            let far = UdpSocket::bind("127.0.0.1:0").await.unwrap();
            far.connect(server).await.unwrap();
            let path =
                Self { address: near.local_addr().unwrap(), longest: Arc::new(AtomicUsize::new(usize::MAX)) };
            tokio::spawn(carry(near, far, Arc::clone(&path.longest)));
            path
        }

        /// It passes no longer IP packets from now on.
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

    /// A client of RakNet that has connected to this address.
    pub(in crate::io) async fn connect(server: SocketAddr) -> Connection {
        let client = Endpoint::bind("127.0.0.1:0", Options::<RakNet>::client().unwrap()).await.unwrap();
        client.connect(server).await.unwrap()
    }

    /// Large messages go to a server that sends them back, one after the other. Nearly all of their datagrams are as long as the MTU.
    /// Returns the MTU of the connection after that.
    pub(in crate::io) async fn echo_large(connection: &Connection) -> usize {
        for number in 0..5 {
            let message = vec![0xFE - number; 50_000];
            connection.send(&message, Delivery::RELIABLE_ORDERED).await.unwrap();
            let echo = connection.recv().await;
            let echo = echo.unwrap_or_else(|| panic!("no echo: {:?}", connection.closed_reason()));
            assert!(echo.bytes == message, "another message than {number}");
        }
        connection.mtu().unwrap().into()
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

    #[test]
    fn a_late_timer_waits_once_and_one_in_time_does_not() {
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
    fn a_second_pause_is_waited_out_although_the_first_one_left_nothing_due() {
        let due = Instant::now();
        let mut catch_up = CatchUp::default();
        assert!(!catch_up.is_over(due, due + LATE));
        // What was read meanwhile has moved the deadline, which is met late again.
        let moved = due + Duration::from_secs(10);
        let late = moved + LATE;
        assert!(!catch_up.is_over(moved, late));
        assert_eq!(catch_up.postponed(moved), late + TIME);
        assert!(catch_up.is_over(moved, late + TIME));
        // One that is met in time waits for nothing.
        assert!(!catch_up.is_over(due, due + LATE));
        assert!(catch_up.is_over(moved, moved));
    }
}
