//! The UDP socket, which receives and sends several datagrams per call, and the inline send path of application tasks.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use quinn_udp::{BATCH_SIZE, RecvMeta, UdpSockRef, UdpSocketState};
use rakwire::Instant;
#[cfg(target_os = "linux")]
use rakwire::wire::offline::is_mtu_probe;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
use rakwire_udp::is_too_large;
use rakwire_udp::{IPV6_MIN_MTU_PAYLOAD, MAX_DATAGRAM, canonical, fragmenting_state, route, send_datagram};
use tokio::io::Interest;
use tokio::net::{ToSocketAddrs, UdpSocket};

use crate::host::{BindError, Clock};
#[cfg(target_os = "linux")]
use crate::outgoing::send_many;
use crate::outgoing::{Outgoing, Transmit, Transmits};
use crate::unreachable::{Reported, read_errors, receive_past_reports, send_past_reports, set_error_reports};

/// Size of a receive buffer in bytes: the maximum of a UDP payload, and of a batch.
const BUFFER: usize = 65_535;
/// Requested size of each of the socket's send and receive buffers (`SO_SNDBUF`, `SO_RCVBUF`), in bytes.
const SYSTEM_BUFFER: usize = 4 << 20;
/// Pause before a retry if the socket's send buffer (`SO_SNDBUF`) is full although the runtime considers the socket
/// writable.
const FULL_PAUSE: Duration = Duration::from_millis(1);

/// True if a receive call returns as many datagrams as its buffers hold, so that a partial result means that the socket
/// is empty. On other systems quinn-udp receives one datagram at a time.
const RECEIVES_BATCHES: bool = cfg!(any(target_os = "linux", target_os = "android", target_os = "freebsd"));

/// A UDP socket that sends and receives in batches.
#[derive(Debug)]
pub(crate) struct Socket {
    io: UdpSocket,
    state: UdpSocketState,
    /// Maximum number of datagrams per call to one address.
    segments: AtomicUsize,
    /// Number of tasks that wait for error reports.
    watches: Mutex<usize>,
    local: SocketAddr,
}

impl Socket {
    /// Binds to the first address that works.
    pub(crate) async fn open(address: impl ToSocketAddrs) -> Result<Self, BindError> {
        Self::open_with(address, Self::bind).await
    }

    /// Binds like [`open`](Self::open), with the given bind function.
    pub(crate) async fn open_with(
        address: impl ToSocketAddrs,
        bind: impl Fn(SocketAddr) -> io::Result<Self>,
    ) -> Result<Self, BindError> {
        let addresses = tokio::net::lookup_host(address).await.map_err(BindError::Resolve)?;
        let mut refused = BindError::NoAddress;
        for address in addresses {
            match bind(address) {
                Ok(socket) => return Ok(socket),
                Err(source) => refused = BindError::Socket { address, source },
            }
        }
        Err(refused)
    }

    pub(crate) fn bind(address: SocketAddr) -> io::Result<Self> {
        Self::over(bound(address)?)
    }

    /// Binds a socket that shares its address with others (SO_REUSEPORT). The system passes all datagrams of a sender
    /// to the same socket.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(crate) fn bind_shared(address: SocketAddr) -> io::Result<Self> {
        let socket = unbound(address)?;
        socket.set_reuse_port(true)?;
        socket.bind(&address.into())?;
        Self::over(socket.into())
    }

    /// Returns an error: other systems do not distribute datagrams by sender.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    pub(crate) fn bind_shared(_address: SocketAddr) -> io::Result<Self> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "this system cannot share a port by sender"))
    }

    /// Uses a socket that is already bound.
    pub(crate) fn over(socket: std::net::UdpSocket) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let state = fragmenting_state(&socket)?;
        #[cfg(any(target_os = "linux", target_os = "android"))]
        leave_out_control_messages(&socket);
        // The system may limit the sizes; any size works.
        let _ = state.set_recv_buffer_size(UdpSockRef::from(&socket), SYSTEM_BUFFER);
        let _ = state.set_send_buffer_size(UdpSockRef::from(&socket), SYSTEM_BUFFER);
        // Discovery needs broadcasts. If this fails, sending to broadcast addresses fails.
        let _ = socket.set_broadcast(true);
        let local = socket.local_addr()?;
        let segments = AtomicUsize::new(state.max_gso_segments());
        Ok(Self { io: UdpSocket::from_std(socket)?, state, segments, watches: Mutex::default(), local })
    }

    fn watches(&self) -> MutexGuard<'_, usize> {
        self.watches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enables error reports until [`unwatch`](Self::unwatch) has been called as often as this method.
    pub(crate) fn watch(&self) {
        let mut watches = self.watches();
        *watches += 1;
        if *watches == 1 {
            set_error_reports(&self.io, true);
        }
    }

    pub(crate) fn unwatch(&self) {
        let mut watches = self.watches();
        *watches = watches.saturating_sub(1);
        if *watches == 0 {
            set_error_reports(&self.io, false);
        }
    }

    /// Waits until the network reports unreachable addresses, and returns them all.
    pub(crate) async fn unreachable(&self) -> Vec<SocketAddr> {
        let read = || match read_errors(&self.io) {
            Reported { addresses, are_all: true } if addresses.is_empty() => {
                Err(io::ErrorKind::WouldBlock.into())
            }
            Reported { addresses, .. } => Ok(addresses),
        };
        loop {
            if self.io.ready(Interest::ERROR).await.is_err() {
                // The runtime is shutting down.
                return std::future::pending().await;
            }
            match self.io.try_io(Interest::ERROR, read) {
                // More reports are pending; the reports read so far did not concern unreachable addresses.
                Ok(addresses) if addresses.is_empty() => tokio::task::yield_now().await,
                Ok(addresses) => return addresses.into_iter().map(canonical).collect(),
                Err(_) => {}
            }
        }
    }

    pub(crate) const fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Returns the maximum number of datagrams per call to one address.
    pub(crate) fn max_segments(&self) -> usize {
        self.segments.load(Ordering::Relaxed)
    }

    /// Waits until the runtime reports received datagrams.
    pub(crate) async fn readable(&self) -> io::Result<()> {
        self.io.readable().await
    }

    /// Receives datagrams that the runtime has reported, or returns `None` if there are none. Their arrival time is
    /// that of the receive call.
    pub(crate) fn try_receive<'b>(
        &self,
        clock: &Clock,
        buffers: &'b mut Buffers,
    ) -> io::Result<Option<Received<'b>>> {
        let mut arrived = None;
        let call = || {
            let count = receive_past_reports(|| buffers.receive(&self.state, &self.io))?;
            arrived = Some((clock.now(), count));
            let are_all = RECEIVES_BATCHES && count < BATCH_SIZE;
            if are_all { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
        };
        let called = self.io.try_io(Interest::READABLE, call);
        match (arrived, called) {
            (Some((at, count)), _) => Ok(Some(buffers.received(at, count))),
            (None, Err(error)) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            (None, _) => Ok(None),
        }
    }

    /// Receives datagrams that the runtime may not have reported yet, because it polls the system only between tasks.
    pub(crate) fn receive_now<'b>(
        &self,
        clock: &Clock,
        buffers: &'b mut Buffers,
    ) -> io::Result<Received<'b>> {
        let count = receive_past_reports(|| buffers.receive(&self.state, &self.io))?;
        Ok(buffers.received(clock.now(), count))
    }

    /// Sends `first`, and as many of `others` as the same call can send; waits while the socket's send buffer is full.
    ///
    /// Returns how many of `others` were sent; an error concerns `first`.
    #[cfg(target_os = "linux")]
    pub(crate) async fn send_with(&self, first: &Transmit<'_>, others: &Transmits<'_>) -> io::Result<usize> {
        let all = std::iter::once(first.clone()).chain(others.clone());
        let single: send_many::Datagrams<'_> = all
            .take_while(|transmit| transmit.count == 1 && !is_mtu_probe(transmit.bytes))
            .take(send_many::MOST)
            .collect();
        if single.len() < 2 {
            return self.send(first).await.map(|()| 0);
        }
        let call = || send_past_reports(|| send_many::send(&self.io, &single, |to| route(self.local, to)));
        let sent = self.when_writable(|| self.io.try_io(Interest::WRITABLE, call)).await?;
        Ok(sent.saturating_sub(1))
    }

    /// Sends `first` only: on other systems a call sends to a single address.
    #[cfg(not(target_os = "linux"))]
    pub(crate) async fn send_with(&self, first: &Transmit<'_>, _others: &Transmits<'_>) -> io::Result<usize> {
        self.send(first).await.map(|()| 0)
    }

    /// Sends datagrams; waits while the socket's send buffer is full.
    pub(crate) async fn send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        self.when_writable(|| self.try_send(transmit)).await
    }

    async fn when_writable<T>(&self, send: impl Fn() -> io::Result<T>) -> io::Result<T> {
        let mut was_full = false;
        loop {
            match send() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.io.writable().await?,
                other => return other,
            }
            if was_full {
                // After an error about a datagram, the runtime considers the socket closed and therefore always
                // writable.
                tokio::time::sleep(FULL_PAUSE).await;
            }
            was_full = true;
        }
    }

    /// Waits until the runtime reports that the socket is writable.
    #[cfg(test)]
    pub(crate) async fn writable(&self) {
        self.io.writable().await.expect("a socket of this system");
    }

    /// Sends datagrams if the system has buffer space now.
    pub(crate) fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let destination = route(self.local, transmit.to);
        if transmit.count > 1 {
            return send_past_reports(|| self.send_segments(destination, transmit));
        }
        // A send without a segment size is cheaper for the system.
        let send = || send_past_reports(|| self.io.try_send_to(transmit.bytes, destination).map(drop));
        send_datagram(&self.io, destination, transmit.bytes, send)
    }

    /// Sends several datagrams with one call. All have the same length, except that the last may be shorter.
    fn send_segments(&self, destination: SocketAddr, transmit: &Transmit<'_>) -> io::Result<()> {
        let segments = quinn_udp::Transmit {
            destination,
            ecn: None,
            contents: transmit.bytes,
            segment_size: Some(transmit.size),
            src_ip: None,
        };
        let call = || self.state.try_send(UdpSockRef::from(&self.io), &segments);
        let sent = self.io.try_io(Interest::WRITABLE, call);
        if sent.as_ref().is_err_and(|error| refuses_segments(error, transmit.size)) {
            // quinn-udp has just disabled segmentation for the same reason.
            self.segments.store(self.state.max_gso_segments(), Ordering::Relaxed);
        }
        sent
    }
}

/// Binds a UDP socket. A socket for the unspecified IPv6 address also receives IPv4 wherever the system supports it, as
/// RFC 3493 section 5.3 requires; not all systems do so by default.
pub(crate) fn bound(address: SocketAddr) -> io::Result<std::net::UdpSocket> {
    let socket = unbound(address)?;
    socket.bind(&address.into())?;
    Ok(socket.into())
}

fn unbound(address: SocketAddr) -> io::Result<socket2::Socket> {
    let socket = socket2::Socket::new(socket2::Domain::for_address(address), socket2::Type::DGRAM, None)?;
    if address.is_ipv6() && address.ip().is_unspecified() {
        // OpenBSD does not support it.
        let _ = socket.set_only_v6(false);
    }
    Ok(socket)
}

/// Returns true if an error means that the network does not support segmentation at all.
///
/// The error is EIO if the interface has no checksum offload, and EINVAL on older kernels. EINVAL also results from
/// segments that exceed the path MTU of one receiver, which does not concern other receivers: the system fragments only
/// datagrams that are sent individually.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn refuses_segments(error: &io::Error, size: usize) -> bool {
    use nix::errno::Errno;

    let errno = error.raw_os_error().map(Errno::from_raw);
    errno == Some(Errno::EIO) || (errno == Some(Errno::EINVAL) && size <= IPV6_MIN_MTU_PAYLOAD)
}

/// Returns false: other systems have no specific error for missing segmentation.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn refuses_segments(error: &io::Error, size: usize) -> bool {
    let is_narrow = size > IPV6_MIN_MTU_PAYLOAD && is_too_large(error);
    error.kind() != io::ErrorKind::WouldBlock && !is_narrow
}

/// Disables control messages that this crate does not read.
///
/// quinn-udp requests the destination and the traffic class of each datagram, and both cost the system time per
/// datagram.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn leave_out_control_messages(socket: &std::net::UdpSocket) {
    use nix::sys::socket::{setsockopt, sockopt};
    use socket2::SockRef;

    // A socket supports only the options of its family, and works even if this fails.
    let _ = setsockopt(socket, sockopt::Ipv4PacketInfo, &false);
    let _ = setsockopt(socket, sockopt::Ipv6RecvPacketInfo, &false);
    let _ = setsockopt(socket, sockopt::IpRecvTos, &false);
    let _ = SockRef::from(socket).set_recv_tclass_v6(false);
}

/// The datagrams in one receive buffer: all from one sender, and all `stride` bytes long except the last, which may be
/// shorter.
#[derive(Debug)]
pub(crate) struct RecvBatch<B = Box<[u8]>> {
    pub(crate) at: Instant,
    pub(crate) from: SocketAddr,
    pub(crate) stride: usize,
    pub(crate) bytes: B,
}

impl<B: Deref<Target = [u8]>> RecvBatch<B> {
    pub(crate) fn datagrams(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.bytes.chunks(self.stride.max(1))
    }
}

impl RecvBatch<&[u8]> {
    pub(crate) fn into_owned(self) -> RecvBatch {
        RecvBatch { at: self.at, from: self.from, stride: self.stride, bytes: self.bytes.into() }
    }
}

/// The result of a receive call: the buffers that were filled.
#[derive(Debug)]
pub(crate) struct Received<'b> {
    at: Instant,
    metas: &'b [RecvMeta],
    bytes: &'b [u8],
}

impl<'b> Received<'b> {
    /// Returns the datagrams of each buffer, except those longer than [`MAX_DATAGRAM`].
    pub(crate) fn batches(&self) -> impl Iterator<Item = RecvBatch<&'b [u8]>> + use<'b> {
        let at = self.at;
        self.buffers().filter(|(meta, bytes)| meta.stride <= MAX_DATAGRAM && !bytes.is_empty()).map(
            move |(meta, bytes)| RecvBatch { at, from: canonical(meta.addr), stride: meta.stride, bytes },
        )
    }

    /// Returns the number of datagrams longer than [`MAX_DATAGRAM`].
    pub(crate) fn too_long(&self) -> u64 {
        let too_long = self.buffers().filter(|(meta, _)| meta.stride > MAX_DATAGRAM);
        too_long.map(|(meta, bytes)| bytes.chunks(meta.stride).count() as u64).sum()
    }

    /// Returns true if a batched call filled all buffers, so that more datagrams may be waiting.
    pub(crate) const fn is_full(&self) -> bool {
        RECEIVES_BATCHES && self.metas.len() == BATCH_SIZE
    }

    /// Returns true if nothing more had arrived at the time of the call.
    pub(crate) const fn are_all(&self) -> bool {
        RECEIVES_BATCHES && self.metas.len() < BATCH_SIZE
    }

    fn buffers(&self) -> impl Iterator<Item = (&'b RecvMeta, &'b [u8])> + use<'b> {
        let of_meta =
            |(meta, buffer): (&'b RecvMeta, &'b [u8])| (meta, buffer.get(..meta.len).unwrap_or(buffer));
        self.metas.iter().zip(self.bytes.chunks(BUFFER)).map(of_meta)
    }
}

/// The buffers of receive calls.
#[derive(Debug)]
pub(crate) struct Buffers {
    bytes: Box<[u8]>,
    metas: [RecvMeta; BATCH_SIZE],
}

impl Buffers {
    pub(crate) fn new() -> Self {
        Self { bytes: vec![0; BUFFER * BATCH_SIZE].into(), metas: [RecvMeta::default(); BATCH_SIZE] }
    }

    fn receive(&mut self, state: &UdpSocketState, io: &UdpSocket) -> io::Result<usize> {
        let mut chunks = self.bytes.chunks_mut(BUFFER);
        let mut slices: [IoSliceMut<'_>; BATCH_SIZE] =
            std::array::from_fn(|_| IoSliceMut::new(chunks.next().unwrap_or_default()));
        state.recv(UdpSockRef::from(io), &mut slices, &mut self.metas)
    }

    fn received(&self, at: Instant, count: usize) -> Received<'_> {
        Received { at, metas: self.metas.get(..count).unwrap_or(&self.metas), bytes: &self.bytes }
    }
}

/// Maximum number of datagrams sent inline at a time: an acknowledgement that is due, and the message.
const DATAGRAMS: usize = 2;

/// The way in which the next datagram of an endpoint is sent, decided under the lock of the protocol.
///
/// ```text
///              one datagram arrives, and the driver has nothing composed
///   ┌────────┐ ────────────────────────────────────────────────────────▶ ┌────────┐
///   │ Driver │                                                           │ Inline │ ─┐ another one
///   └────────┘ ◀──────────────────────────────────────────────────────── └────────┘ ◀┘ arrives
///       ▲        a message leaves, the driver runs, or the socket changes      │
///       │                                                                      │ the system refuses
///       │                           ┌──────┐                                   │ a datagram
///       └────────────────────────── │ Held │ ◀─────────────────────────────────┘
///             the driver runs       └──────┘
/// ```
///
/// The first message after an arrival is sent inline by the task that queues it, because the peer may be waiting for it
/// as a reply. Datagrams that are already due go first, and may leave the message to the driver.
///
/// The driver sends all other messages, to save system calls. It collects them in [`Outgoing`]. One call sends a single
/// datagram, equal segments to one address, or on Linux datagrams to many addresses (`send_many`).
#[derive(Debug)]
enum SendMode {
    /// The driver sends it in its next run.
    Driver,
    /// The task that queues the next message sends it inline through this socket, which the tasks of the endpoint own.
    Inline(Weak<Socket>),
    /// The driver sends it after the datagram in the buffer, which the system has refused.
    Held { to: SocketAddr, size: usize },
}

/// The [`SendMode`] of an endpoint, and the buffer of datagrams that leave inline.
#[derive(Debug)]
pub(crate) struct SendPath {
    mode: SendMode,
    buffer: Box<[u8]>,
}

impl SendPath {
    /// Creates the state for datagrams of at most `max_datagram` bytes.
    pub(crate) fn new(max_datagram: usize) -> Self {
        Self { mode: SendMode::Driver, buffer: vec![0; max_datagram].into() }
    }

    /// Lets the next message be sent through this socket, unless it would overtake a held datagram. Precondition: the
    /// driver holds no composed datagrams.
    pub(crate) fn allow_inline(&mut self, socket: &Arc<Socket>) {
        match self.mode {
            SendMode::Driver | SendMode::Inline(_) => self.mode = SendMode::Inline(Arc::downgrade(socket)),
            SendMode::Held { .. } => {}
        }
    }

    /// Leaves the next message to the driver, because the socket has changed.
    pub(crate) fn forbid_inline(&mut self) {
        match self.mode {
            SendMode::Inline(_) => self.mode = SendMode::Driver,
            SendMode::Driver | SendMode::Held { .. } => {}
        }
    }

    /// Sends the datagrams that `compose` writes, if the next message may be sent inline. A datagram that the system
    /// refuses is held for the driver.
    pub(crate) fn send_inline(&mut self, mut compose: impl FnMut(&mut [u8]) -> Option<(SocketAddr, usize)>) {
        let SendMode::Inline(socket) = &self.mode else { return };
        let socket = socket.upgrade();
        self.mode = SendMode::Driver;
        let Some(socket) = socket else { return };
        for _ in 0..DATAGRAMS {
            let Some((to, size)) = compose(&mut self.buffer) else { return };
            let bytes = self.buffer.get(..size).unwrap_or(&self.buffer);
            if socket.try_send(&Transmit { to, size, count: 1, bytes }).is_err() {
                self.mode = SendMode::Held { to, size };
                return;
            }
        }
    }

    /// Leaves all further sending to the driver, beginning with the held datagram.
    pub(crate) fn return_to_driver(&mut self, outgoing: &mut Outgoing) {
        match std::mem::replace(&mut self.mode, SendMode::Driver) {
            SendMode::Driver | SendMode::Inline(_) => {}
            SendMode::Held { to, size } => {
                outgoing.push_copy(to, self.buffer.get(..size).unwrap_or(&self.buffer))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(any(target_os = "linux", target_os = "android"))]
    #[test]
    fn only_segmentation_errors_turn_segmentation_off() {
        use nix::errno::Errno;

        let refuses =
            |errno: Errno, size| refuses_segments(&io::Error::from_raw_os_error(errno as i32), size);
        assert!(refuses(Errno::EIO, 1_464) && refuses(Errno::EINVAL, 1_000));
        for errno in
            [Errno::EINVAL, Errno::EAGAIN, Errno::EMSGSIZE, Errno::ENETUNREACH, Errno::ENOBUFS, Errno::EPERM]
        {
            assert!(!refuses(errno, 1_464), "{errno}");
        }
    }

    #[cfg(any(target_os = "linux", target_os = "android"))]
    #[tokio::test]
    async fn unused_control_messages_are_disabled() {
        use nix::sys::socket::{getsockopt, sockopt};

        for address in ["127.0.0.1:0", "[::1]:0"] {
            // IPv6 may be unavailable.
            let Ok(Socket { io, .. }) = Socket::open(address).await else { continue };
            assert_eq!(getsockopt(&io, sockopt::ReceiveTimestampns), Ok(false));
            assert_eq!(getsockopt(&io, sockopt::Ipv4PacketInfo), Ok(false));
            assert_eq!(getsockopt(&io, sockopt::IpRecvTos), Ok(false));
            if address.starts_with('[') {
                assert_eq!(getsockopt(&io, sockopt::Ipv6RecvPacketInfo), Ok(false));
                assert!(!socket2::SockRef::from(&io).recv_tclass_v6().unwrap());
            }
        }
    }

    /// The system's own reports about oversized datagrams are queued before that of the closed port.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    #[tokio::test]
    async fn a_closed_port_is_reported_after_many_other_errors() {
        let socket = Socket::open("127.0.0.1:0").await.expect("a free port");
        let peer = std::net::UdpSocket::bind("127.0.0.1:0").expect("a free port");
        // Connecting it to itself closes the port to all other senders, and keeps other programs from taking it.
        let closed = peer.local_addr().expect("the socket is bound");
        peer.connect(closed).expect("an address of this machine");
        socket.watch();
        for _ in 0..300 {
            let _ = socket.io.send_to(&[0; 65_510], closed).await.expect_err("the interface takes 65,507");
        }
        socket.io.send_to(&[1], closed).await.expect("enough space");
        assert_eq!(socket.unreachable().await, [closed]);
        socket.unwatch();
    }

    async fn socket() -> Arc<Socket> {
        let socket = Socket::open("127.0.0.1:0").await.expect("a free port");
        socket.writable().await;
        Arc::new(socket)
    }

    /// Composes datagrams endlessly.
    fn compose(to: SocketAddr) -> impl FnMut(&mut [u8]) -> Option<(SocketAddr, usize)> {
        move |buffer| {
            buffer[..3].copy_from_slice(&[1, 2, 3]);
            Some((to, 3))
        }
    }

    fn is_allowed(send_path: &mut SendPath) -> bool {
        let mut is_allowed = false;
        send_path.send_inline(|_| {
            is_allowed = true;
            None
        });
        is_allowed
    }

    /// An event that changes the [`SendMode`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Step {
        Arrival,
        SocketChange,
        Message,
        RefusedMessage,
        DriverRun,
    }

    fn name(send_path: &SendPath) -> &'static str {
        match send_path.mode {
            SendMode::Driver => "driver",
            SendMode::Inline(_) => "inline",
            SendMode::Held { .. } => "held",
        }
    }

    #[tokio::test]
    async fn each_event_changes_the_send_mode_as_in_the_diagram() {
        use Step::{Arrival, DriverRun, Message, RefusedMessage, SocketChange};

        let (socket, nowhere) = (socket().await, ([127, 0, 0, 1], 0).into());
        let receiver = std::net::UdpSocket::bind("127.0.0.1:0").expect("a free port");
        let there = receiver.local_addr().expect("the socket is bound");
        let take = |send_path: &mut SendPath, step: Step| match step {
            Arrival => send_path.allow_inline(&socket),
            SocketChange => send_path.forbid_inline(),
            Message => send_path.send_inline(compose(there)),
            RefusedMessage => send_path.send_inline(compose(nowhere)),
            DriverRun => send_path.return_to_driver(&mut Outgoing::new(8)),
        };
        let ways: [(&str, &[Step]); 3] =
            [("driver", &[]), ("inline", &[Arrival]), ("held", &[Arrival, RefusedMessage])];
        for (from, steps) in ways {
            for step in [Arrival, SocketChange, Message, RefusedMessage, DriverRun] {
                let mut send_path = SendPath::new(8);
                steps.iter().for_each(|step| take(&mut send_path, *step));
                assert_eq!(name(&send_path), from);
                take(&mut send_path, step);
                let to = match (from, step) {
                    ("driver" | "inline", Arrival) => "inline",
                    ("inline", RefusedMessage) => "held",
                    ("held", Arrival | SocketChange | Message | RefusedMessage) => "held",
                    _ => "driver",
                };
                assert_eq!(name(&send_path), to, "{step:?} from {from}");
            }
        }
    }

    #[tokio::test]
    async fn a_refused_datagram_is_returned_to_the_driver() {
        let nowhere = ([127, 0, 0, 1], 0).into();
        let (mut send_path, mut outgoing, socket) = (SendPath::new(8), Outgoing::new(8), socket().await);
        send_path.allow_inline(&socket);
        send_path.send_inline(compose(nowhere));
        send_path.allow_inline(&socket);
        assert!(!is_allowed(&mut send_path), "no message overtakes the held datagram");
        send_path.return_to_driver(&mut outgoing);
        let left = [Transmit { to: nowhere, size: 3, count: 1, bytes: &[1, 2, 3] }];
        assert!(outgoing.transmits(1).eq(left));
        outgoing.clear();
        send_path.return_to_driver(&mut outgoing);
        assert!(outgoing.is_empty(), "the held datagram is returned only once");
        send_path.allow_inline(&socket);
        assert!(is_allowed(&mut send_path));
    }

    #[tokio::test]
    async fn only_a_few_datagrams_are_sent_inline_after_an_arrival() {
        let receiver = std::net::UdpSocket::bind("127.0.0.1:0").expect("a free port");
        receiver.set_read_timeout(Some(Duration::from_secs(10))).expect("a timeout");
        let to = receiver.local_addr().expect("the socket is bound");
        let (mut send_path, mut outgoing, socket) = (SendPath::new(8), Outgoing::new(8), socket().await);
        assert!(!is_allowed(&mut send_path), "no datagram has arrived");
        send_path.allow_inline(&socket);
        send_path.send_inline(compose(to));
        for _ in 0..DATAGRAMS {
            assert_eq!(receiver.recv(&mut [0; 8]).expect("a datagram"), 3);
        }
        receiver.set_nonblocking(true).expect("a socket of this system");
        assert!(receiver.recv(&mut [0; 8]).is_err(), "the other datagrams are left to the driver");
        assert!(!is_allowed(&mut send_path), "the permission is used up");
        send_path.allow_inline(&socket);
        send_path.return_to_driver(&mut outgoing);
        assert!(!is_allowed(&mut send_path), "the driver has run");
        assert!(outgoing.is_empty());
    }

    #[tokio::test]
    async fn a_send_path_does_not_keep_a_socket_open() {
        let (mut send_path, socket) = (SendPath::new(8), socket().await);
        let address = socket.local_addr();
        send_path.allow_inline(&socket);
        drop(socket);
        std::net::UdpSocket::bind(address).expect("the address is free");
        assert!(!is_allowed(&mut send_path));
    }
}
