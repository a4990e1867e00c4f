//! The UDP socket: the only module that uses those of embassy-net.

use core::net::{IpAddr, SocketAddr};
use core::pin::pin;
use core::task::{Context, Poll};
use core::time::Duration;

use embassy_net::udp::{PacketMetadata, UdpSocket};
use embassy_net::{IpAddress, IpEndpoint, Stack};
use heapless::Vec;
use rakwire::Instant;

/// The send buffer in datagrams of full size.
const OUTGOING_DATAGRAMS: usize = 2;
/// How many datagrams can share the space of one of full size, if they are short.
const METADATA_PER_DATAGRAM: usize = 4;
/// How long the send buffer may be blocked before it is discarded. smoltcp sends a neighbour solicitation or ARP request
/// once a second and nothing else until then, so the datagram at the head has to be dropped before the next one.
const SEND_TIMEOUT: Duration = Duration::from_millis(900);

/// The memory of a socket, with a receive buffer for `DATAGRAMS` datagrams of the full size of `SIZE` bytes.
#[derive(Debug)]
pub(crate) struct Buffers<const DATAGRAMS: usize, const SIZE: usize> {
    received: [[u8; SIZE]; DATAGRAMS],
    received_metadata: Vec<[PacketMetadata; METADATA_PER_DATAGRAM], DATAGRAMS>,
    sent: [[u8; SIZE]; OUTGOING_DATAGRAMS],
    sent_metadata: Vec<[PacketMetadata; METADATA_PER_DATAGRAM], OUTGOING_DATAGRAMS>,
    /// The datagram that is composed, or waits for space in the send buffer.
    composed: [u8; SIZE],
}

impl<const DATAGRAMS: usize, const SIZE: usize> Buffers<DATAGRAMS, SIZE> {
    pub(crate) const fn new() -> Self {
        Self {
            received: [[0; SIZE]; DATAGRAMS],
            // Filled later: empty metadata is not all zero bytes, so a static would take flash.
            received_metadata: Vec::new(),
            sent: [[0; SIZE]; OUTGOING_DATAGRAMS],
            sent_metadata: Vec::new(),
            composed: [0; SIZE],
        }
    }
}

/// A UDP socket and the next datagram to send.
pub(crate) struct Socket<'d> {
    socket: UdpSocket<'d>,
    /// The requested port.
    port: u16,
    composed: &'d mut [u8],
    pending: Option<(IpEndpoint, usize)>,
    /// The last known progress of the send buffer; `None` while it is empty.
    last_progress: Option<Instant>,
}

impl<'d> Socket<'d> {
    /// A socket on `port` of `stack`; 0 picks a free one.
    pub(crate) fn new<const DATAGRAMS: usize, const SIZE: usize>(
        buffers: &'d mut Buffers<DATAGRAMS, SIZE>,
        stack: Stack<'d>,
        port: u16,
    ) -> Self {
        fill(&mut buffers.received_metadata);
        fill(&mut buffers.sent_metadata);
        let mut socket = UdpSocket::new(
            stack,
            buffers.received_metadata.as_flattened_mut(),
            buffers.received.as_flattened_mut(),
            buffers.sent_metadata.as_flattened_mut(),
            buffers.sent.as_flattened_mut(),
        );
        // This cannot fail: the socket is new, and the address is unspecified.
        let _ = socket.bind(port);
        Self { socket, port, composed: &mut buffers.composed, pending: None, last_progress: None }
    }

    /// Changes to another free port, unless a port was requested. Discards all buffered datagrams.
    pub(crate) fn change_port(&mut self) {
        if self.port == 0 {
            self.pending = None;
            self.rebind(0);
        }
    }

    /// Discards all buffered datagrams and binds the socket to `port`.
    fn rebind(&mut self, port: u16) {
        self.last_progress = None;
        self.socket.close();
        // This cannot fail, as in `new`.
        let _ = self.socket.bind(port);
    }

    /// Passes the next received datagram to `take` without copying it.
    pub(crate) fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        take: impl FnOnce(SocketAddr, &[u8]),
    ) -> Poll<()> {
        let received = self.socket.recv_from_with(|bytes, meta| {
            take(SocketAddr::new(meta.endpoint.addr.into(), meta.endpoint.port), bytes);
        });
        pin!(received).poll(cx)
    }

    /// When to call `poll_send` at the latest, to check whether the send buffer is blocked.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.last_progress.map(|at| at + SEND_TIMEOUT)
    }

    /// Sends datagrams from `compose` until it returns none, or until the send buffer is full. Datagrams without a route are
    /// dropped, like lost ones.
    pub(crate) fn poll_send(
        &mut self,
        now: Instant,
        cx: &mut Context<'_>,
        mut compose: impl FnMut(&mut [u8]) -> Option<(SocketAddr, usize)>,
    ) -> Poll<()> {
        self.unblock(now, cx);
        loop {
            let was_pending = self.pending.is_some();
            let (to, length) = match self.pending.take() {
                Some(pending) => pending,
                None => {
                    let Some((to, length)) = compose(self.composed) else { return Poll::Ready(()) };
                    // The network does not support the address family.
                    let Some(to) = endpoint(to) else { continue };
                    (to, length)
                }
            };
            let Some(datagram) = self.composed.get(..length) else { continue };
            if self.socket.poll_send_to(datagram, to, cx).is_pending() {
                self.pending = Some((to, length));
                return Poll::Pending;
            }
            // A pending datagram got space, so earlier ones have been sent.
            if was_pending || self.last_progress.is_none() {
                self.last_progress = Some(now);
            }
        }
    }

    /// Discards the send buffer if it is blocked for too long. A datagram whose receiver does not answer the request for its
    /// hardware address stays at the head of the buffer and blocks all others.
    fn unblock(&mut self, now: Instant, cx: &mut Context<'_>) {
        let Some(deadline) = self.deadline() else { return };
        if pin!(self.socket.flush()).poll(cx).is_ready() {
            self.last_progress = None;
        } else if now >= deadline {
            // Keeps the port, because the other peers of open connections know it.
            self.rebind(self.socket.endpoint().port);
        }
    }
}

fn fill<const N: usize>(metadata: &mut Vec<[PacketMetadata; METADATA_PER_DATAGRAM], N>) {
    metadata.clear();
    while metadata.push([PacketMetadata::EMPTY; METADATA_PER_DATAGRAM]).is_ok() {}
}

impl core::fmt::Debug for Socket<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Socket").field("pending", &self.pending).finish_non_exhaustive()
    }
}

/// The address for embassy-net; `None` if the network does not support its family.
pub(crate) const fn endpoint(address: SocketAddr) -> Option<IpEndpoint> {
    let addr = match address.ip() {
        #[cfg(feature = "ipv4")]
        IpAddr::V4(address) => IpAddress::Ipv4(address),
        #[cfg(feature = "ipv6")]
        IpAddr::V6(address) => IpAddress::Ipv6(address),
        #[cfg(not(all(feature = "ipv4", feature = "ipv6")))]
        _ => return None,
    };
    Some(IpEndpoint { addr, port: address.port() })
}
