//! The socket. Everything that is asked of embassy-net is asked here.

use core::net::{IpAddr, SocketAddr};
use core::pin::pin;
use core::task::{Context, Poll};
use core::time::Duration;

use embassy_net::udp::{PacketMetadata, UdpSocket};
use embassy_net::{IpAddress, IpEndpoint, Stack};
use heapless::Vec;
use rakwire::Instant;

/// Datagrams of full size that wait for the network to take them.
const OUTGOING: usize = 2;
/// Datagrams of any size for which there is a place, for each of full size.
const SMALL: usize = 4;
/// How long the socket may send nothing of what it holds. The network asks for a neighbour once a second and is silent
/// between: what stands in the way must be gone before it asks again.
const STANDSTILL: Duration = Duration::from_millis(900);

/// The memory of a socket that holds `DATAGRAMS` datagrams of full size, which is `SIZE` bytes, until they are read.
#[derive(Debug)]
pub(crate) struct Buffers<const DATAGRAMS: usize, const SIZE: usize> {
    received: [[u8; SIZE]; DATAGRAMS],
    received_places: Vec<[PacketMetadata; SMALL], DATAGRAMS>,
    sent: [[u8; SIZE]; OUTGOING],
    sent_places: Vec<[PacketMetadata; SMALL], OUTGOING>,
    /// The datagram that is being composed, or that the socket has no room for yet.
    composed: [u8; SIZE],
}

impl<const DATAGRAMS: usize, const SIZE: usize> Buffers<DATAGRAMS, SIZE> {
    pub(crate) const fn new() -> Self {
        Self {
            received: [[0; SIZE]; DATAGRAMS],
            // An empty place is not all zeros, and would take flash in a static.
            received_places: Vec::new(),
            sent: [[0; SIZE]; OUTGOING],
            sent_places: Vec::new(),
            composed: [0; SIZE],
        }
    }
}

/// A UDP socket, and the datagram that leaves through it next.
pub(crate) struct Port<'d> {
    socket: UdpSocket<'d>,
    /// The port that was asked for.
    number: u16,
    composed: &'d mut [u8],
    waiting: Option<(IpEndpoint, usize)>,
    /// Since when the socket has held something of which nothing has left, as far as is known.
    busy_since: Option<Instant>,
}

impl<'d> Port<'d> {
    /// A socket on `port` of `stack`; 0 is any that is free.
    pub(crate) fn new<const DATAGRAMS: usize, const SIZE: usize>(
        buffers: &'d mut Buffers<DATAGRAMS, SIZE>,
        stack: Stack<'d>,
        port: u16,
    ) -> Self {
        fill(&mut buffers.received_places);
        fill(&mut buffers.sent_places);
        let mut socket = UdpSocket::new(
            stack,
            buffers.received_places.as_flattened_mut(),
            buffers.received.as_flattened_mut(),
            buffers.sent_places.as_flattened_mut(),
            buffers.sent.as_flattened_mut(),
        );
        // A new socket is not bound, and a port without an address can always be bound to.
        let _ = socket.bind(port);
        Self { socket, number: port, composed: &mut buffers.composed, waiting: None, busy_since: None }
    }

    /// Takes another port, if any would do. What the old one holds is lost.
    pub(crate) fn change(&mut self) {
        if self.number == 0 {
            self.waiting = None;
            self.bind_again(0);
        }
    }

    /// Empties the socket, and binds it to `port`.
    fn bind_again(&mut self, port: u16) {
        self.busy_since = None;
        self.socket.close();
        // As before.
        let _ = self.socket.bind(port);
    }

    /// Hands the next datagram that arrived to `take`, where it lies.
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

    /// When to call `poll_send` again, even if there is nothing more to send, to see whether all has left.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.busy_since.map(|since| since + STANDSTILL)
    }

    /// Sends what `compose` writes, datagram after datagram, until it writes none or there is no room. What cannot be
    /// sent because there is no way to its receiver is as good as lost on the way.
    pub(crate) fn poll_send(
        &mut self,
        now: Instant,
        cx: &mut Context<'_>,
        mut compose: impl FnMut(&mut [u8]) -> Option<(SocketAddr, usize)>,
    ) -> Poll<()> {
        self.unblock(now, cx);
        loop {
            let waited = self.waiting.is_some();
            let (to, length) = match self.waiting.take() {
                Some(waiting) => waiting,
                None => {
                    let Some((to, length)) = compose(self.composed) else { return Poll::Ready(()) };
                    // Without an address of that family there is nowhere to send it.
                    let Some(to) = endpoint(to) else { continue };
                    (to, length)
                }
            };
            let Some(datagram) = self.composed.get(..length) else { continue };
            if self.socket.poll_send_to(datagram, to, cx).is_pending() {
                self.waiting = Some((to, length));
                return Poll::Pending;
            }
            // There was no room for one that waited, so others have left.
            if waited || self.busy_since.is_none() {
                self.busy_since = Some(now);
            }
        }
    }

    /// Drops what the socket holds if that has not left for too long. A datagram stays at the head until its receiver
    /// answers the question for its hardware address or there is a way to it, and all others would wait behind it.
    fn unblock(&mut self, now: Instant, cx: &mut Context<'_>) {
        let Some(deadline) = self.deadline() else { return };
        if pin!(self.socket.flush()).poll(cx).is_ready() {
            self.busy_since = None;
        } else if now >= deadline {
            // Open connections know this port, even if any would have done.
            self.bind_again(self.socket.endpoint().port);
        }
    }
}

fn fill<const PLACES: usize>(places: &mut Vec<[PacketMetadata; SMALL], PLACES>) {
    places.clear();
    while places.push([PacketMetadata::EMPTY; SMALL]).is_ok() {}
}

impl core::fmt::Debug for Port<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Port").field("waiting", &self.waiting).finish_non_exhaustive()
    }
}

/// An address as the network knows it, if it knows its family.
const fn endpoint(address: SocketAddr) -> Option<IpEndpoint> {
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
