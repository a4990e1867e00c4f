//! The UDP sockets of a peer. This is the only module that uses the UDP sockets of embassy-net.
//!
//! smoltcp sends the datagrams of a socket in order. A datagram for a receiver with an unknown hardware address stays
//! at the head of the queue until the receiver answers, and delays all others. The main socket is therefore used only
//! for receivers known to be reachable. All other datagrams are sent by a second socket with the same port
//! ([`resolution`]). A blocked socket stays blocked for a second even if it is emptied, so it is replaced by a new one.

mod buffers;
mod neighbours;
#[cfg(feature = "tcp")]
mod reach;
mod resolution;
mod route;

use core::net::{IpAddr, SocketAddr};
use core::pin::pin;
use core::task::{Context, Poll, ready};
use core::time::Duration;

use embassy_net::udp::UdpSocket;
use embassy_net::{IpAddress, IpEndpoint, Stack};
use heapless::Vec;
use rakwire::Instant;
use rakwire::endpoint::{Hook, Protocol};

pub(crate) use buffers::Buffers;
use buffers::Memory;
use neighbours::Knowledge;
pub(crate) use neighbours::{Neighbour, Neighbours};
#[cfg(feature = "tcp")]
pub(crate) use reach::reach;
use resolution::{Decision, Purpose, Resolution};
use route::{Network, Route};

use crate::shared::Shared;
use crate::unsent::UnsentReason;

/// Half of the maximum time for which the main socket may be blocked before it is replaced.
///
/// The timeout has two halves because the task of the network stack must run in between, which it cannot while this
/// task computes.
const SEND_TIMEOUT: Duration = Duration::from_millis(50);
/// The maximum number of stored senders that have not been answered yet.
const SENDERS: usize = 16;

/// The memory of the sockets, which is reused when they are reopened.
pub(crate) struct Storage<'d> {
    memory: Memory<'d>,
    stack: Stack<'d>,
    /// The port that the application requested; 0 for any.
    requested_port: u16,
    /// The current port of the sockets; the requested port until they are first opened.
    port: u16,
}

impl<'d> Storage<'d> {
    /// Creates the storage for sockets on `port` of `stack`, and the send queue. Port 0 picks a free port.
    pub(crate) fn new<const DATAGRAMS: usize, const SIZE: usize>(
        buffers: &'d mut Buffers<DATAGRAMS, SIZE>,
        neighbours: Neighbours<'d>,
        stack: Stack<'d>,
        port: u16,
    ) -> (Self, SendQueue<'d>) {
        let (memory, composed) = buffers.lend();
        let mut storage = Self { memory, stack, requested_port: port, port };
        // If the stack has no space for the sockets, this panics here instead of in the task.
        drop(storage.open());
        let queue = SendQueue {
            composed,
            pending: None,
            neighbours,
            resolution: Resolution::default(),
            network: Network::of(stack),
            senders: Vec::new(),
        };
        (storage, queue)
    }

    /// Opens the sockets on the current port.
    pub(crate) fn open(&mut self) -> Sockets<'_> {
        let (main, resolving) = self.memory.open(self.stack, self.port);
        self.port = main.endpoint().port;
        Sockets {
            main,
            resolving,
            stack: self.stack,
            is_port_free: self.requested_port == 0,
            last_progress: None,
            is_suspect: false,
            queued: 0,
            is_full: false,
            wake_at: None,
            successor: None,
        }
    }

    /// Prepares for the sockets that will replace the current ones.
    pub(crate) const fn follow(&mut self, successor: Successor) {
        if matches!(successor, Successor::OnFreshPort) {
            self.port = self.requested_port;
        }
    }
}

impl core::fmt::Debug for Storage<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Storage").field("port", &self.port).finish_non_exhaustive()
    }
}

/// The datagram to send, and the known state of the network. Both are kept when the sockets are replaced.
#[derive(Debug)]
pub(crate) struct SendQueue<'d> {
    composed: &'d mut [u8],
    /// The datagram in `composed`, if it has not been sent yet.
    pending: Option<(IpEndpoint, usize)>,
    neighbours: Neighbours<'d>,
    resolution: Resolution,
    network: Network,
    /// Senders of received datagrams to which no answer may have been sent yet.
    senders: Vec<IpAddress, SENDERS>,
}

impl SendQueue<'_> {
    /// Stores the sender of a datagram.
    fn received_from(&mut self, now: Instant, from: IpAddress) {
        self.neighbours.received_from(now, from);
        if !self.senders.contains(&from) {
            // If the list is full, every unknown receiver is treated as a sender.
            let _ = self.senders.push(from);
        }
    }

    /// Composes the next datagram.
    fn next<P: Protocol, H: Hook<P>>(
        &mut self,
        now: Instant,
        shared: &Shared<'_, P, H>,
    ) -> Option<(IpEndpoint, usize)> {
        if let Some(pending) = self.pending.take() {
            return Some(pending);
        }
        loop {
            let (to, length) = shared.poll_transmit(now, self.composed)?;
            if let Some(to) = endpoint(to) {
                return Some((to, length));
            }
            shared.count_unsent(UnsentReason::NoRoute, 1);
        }
    }

    /// Returns why a datagram is sent. `has_task` is true if a task has a connection with the receiver, and `None` if
    /// there is no connection.
    fn purpose(&self, to: IpAddress, has_task: Option<bool>) -> Purpose {
        match has_task {
            Some(true) => Purpose::Wanted,
            None if !self.senders.is_full() && !self.senders.contains(&to) => Purpose::Wanted,
            Some(false) | None => Purpose::Answer,
        }
    }

    /// Records that the sockets were replaced by empty ones.
    pub(crate) fn discard<P: Protocol, H: Hook<P>>(&mut self, now: Instant, shared: &Shared<'_, P, H>) {
        let discarded = self.resolution.discarded(now);
        if let Some(hop) = discarded.failed {
            self.neighbours.failed(now, hop);
        }
        self.neighbours.flushed();
        shared.count_unsent(UnsentReason::Unanswered, discarded.datagrams);
    }
}

/// The sockets that replace the closed ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Successor {
    OnSamePort,
    OnFreshPort,
}

/// The main socket, which receives all datagrams, and the socket for receivers that may have an unknown hardware
/// address.
pub(crate) struct Sockets<'m> {
    main: UdpSocket<'m>,
    resolving: UdpSocket<'m>,
    stack: Stack<'m>,
    /// Set if no port was requested.
    is_port_free: bool,
    /// The last known progress of the main socket; `None` while it is empty.
    last_progress: Option<Instant>,
    /// Set once the main socket has made no progress for `SEND_TIMEOUT`.
    is_suspect: bool,
    /// The number of datagrams written to the main socket since it was last empty.
    queued: u32,
    /// Set while a datagram waits for space in the main socket.
    is_full: bool,
    /// The time at which the waiting datagram is retried.
    wake_at: Option<Instant>,
    /// Set when the sockets must be replaced.
    successor: Option<Successor>,
}

impl Sockets<'_> {
    /// Returns the sockets that must replace these, if any.
    pub(crate) const fn successor(&self) -> Option<Successor> {
        self.successor
    }

    /// Requests sockets on another free port, unless a port was requested. Buffered datagrams are lost.
    pub(crate) const fn change_port(&mut self, queue: &mut SendQueue<'_>) {
        if self.is_port_free {
            queue.pending = None;
            self.successor = Some(Successor::OnFreshPort);
        }
    }

    /// Returns the maximum number of datagrams in the receive buffer.
    pub(crate) fn receive_capacity(&self) -> usize {
        self.main.packet_recv_capacity()
    }

    /// Passes the next received datagram to `take` without copying it.
    pub(crate) fn poll_receive(
        &mut self,
        now: Instant,
        queue: &mut SendQueue<'_>,
        cx: &mut Context<'_>,
        take: impl FnOnce(SocketAddr, &[u8]),
    ) -> Poll<()> {
        let received = self.main.recv_from_with(|bytes, meta| {
            queue.received_from(now, meta.endpoint.addr);
            take(address(meta.endpoint), bytes);
        });
        pin!(received).poll(cx)
    }

    /// Returns the latest time of the next call of `poll_send`, if the sockets contain datagrams.
    pub(crate) fn deadline(&self, now: Instant, queue: &SendQueue<'_>) -> Option<Instant> {
        let main = self.last_progress.map(|at| at + SEND_TIMEOUT);
        // Once the deadline has passed, the main socket must be emptied first, which wakes the task.
        let resolving = queue.resolution.deadline().filter(|at| *at > now);
        [main, resolving, self.wake_at].into_iter().flatten().min()
    }

    /// Sends datagrams until the peer has none, the send buffer is full, or the sockets must be replaced.
    pub(crate) fn poll_send<P: Protocol, H: Hook<P>>(
        &mut self,
        now: Instant,
        queue: &mut SendQueue<'_>,
        shared: &Shared<'_, P, H>,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        self.wake_at = None;
        self.check(now, queue, shared, cx);
        while self.successor.is_none() {
            let Some((to, length)) = queue.next(now, shared) else {
                queue.senders.clear();
                return Poll::Ready(());
            };
            match self.send(now, queue, shared, (to, length), cx) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(reason)) => shared.count_unsent(reason, 1),
                Poll::Pending => {
                    queue.pending = Some((to, length));
                    return Poll::Pending;
                }
            }
        }
        Poll::Pending
    }

    /// Checks the progress of the datagrams in the sockets, and requests new sockets if they are blocked.
    fn check<P: Protocol, H: Hook<P>>(
        &mut self,
        now: Instant,
        queue: &mut SendQueue<'_>,
        shared: &Shared<'_, P, H>,
        cx: &mut Context<'_>,
    ) {
        let network = Network::of(self.stack);
        if network != queue.network {
            queue.network = network;
            queue.neighbours.clear();
            queue.resolution.clear();
        }
        if let Some(since) = self.last_progress {
            if is_empty(&mut self.main, cx) {
                (self.last_progress, self.is_suspect, self.queued) = (None, false, 0);
                queue.neighbours.flushed();
            } else if now >= since + SEND_TIMEOUT && !self.is_suspect {
                (self.last_progress, self.is_suspect) = (Some(now), true);
            } else if now >= since + SEND_TIMEOUT {
                shared.count_unsent(UnsentReason::Unanswered, self.queued);
                queue.neighbours.blocked();
                self.successor = Some(Successor::OnSamePort);
                return;
            }
        }
        if queue.resolution.is_empty() {
            return;
        }
        if is_empty(&mut self.resolving, cx) {
            for hop in queue.resolution.flushed() {
                queue.neighbours.reached(now, hop);
            }
        } else if queue.resolution.deadline().is_some_and(|at| now >= at) && is_empty(&mut self.main, cx) {
            self.successor = Some(Successor::OnSamePort);
        }
    }

    /// Writes a datagram to the socket for its receiver.
    fn send<P: Protocol, H: Hook<P>>(
        &mut self,
        now: Instant,
        queue: &mut SendQueue<'_>,
        shared: &Shared<'_, P, H>,
        (to, length): (IpEndpoint, usize),
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), UnsentReason>> {
        let hop = match queue.network.route(to.addr) {
            Route::Direct => return self.send_main(now, queue, (to, length), cx).map(Ok),
            Route::Via(hop) => hop,
            Route::None => return Poll::Ready(Err(UnsentReason::NoRoute)),
        };
        let knowledge = queue.neighbours.knowledge(now, hop, hop != to.addr);
        if knowledge == Knowledge::Reachable {
            ready!(self.send_main(now, queue, (to, length), cx));
            queue.neighbours.queued(hop);
            return Poll::Ready(Ok(()));
        }
        let purpose = queue.purpose(to.addr, shared.has_task(address(to)));
        match queue.resolution.decide(now, hop, purpose, knowledge) {
            Decision::Send => {
                let Some(datagram) = queue.composed.get(..length) else { return Poll::Ready(Ok(())) };
                if self.resolving.poll_send_to(datagram, to, cx).is_pending() {
                    return Poll::Ready(Err(UnsentReason::Unanswered));
                }
                queue.resolution.sent(now, hop, purpose);
                Poll::Ready(Ok(()))
            }
            Decision::Wait(until) => {
                self.wake_at = Some(until);
                Poll::Pending
            }
            Decision::Displace if is_empty(&mut self.main, cx) => {
                self.successor = Some(Successor::OnSamePort);
                Poll::Pending
            }
            // The main socket is not empty, and its contents would be lost.
            Decision::Displace if purpose == Purpose::Answer => Poll::Ready(Err(UnsentReason::Rationed)),
            Decision::Displace => Poll::Pending,
            Decision::Drop(reason) => Poll::Ready(Err(reason)),
        }
    }

    /// Writes a datagram to the main socket.
    fn send_main(
        &mut self,
        now: Instant,
        queue: &SendQueue<'_>,
        (to, length): (IpEndpoint, usize),
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        let Some(datagram) = queue.composed.get(..length) else { return Poll::Ready(()) };
        if self.main.poll_send_to(datagram, to, cx).is_pending() {
            self.is_full = true;
            return Poll::Pending;
        }
        // A waiting datagram has found space, so earlier datagrams have been sent.
        if core::mem::take(&mut self.is_full) || self.last_progress.is_none() {
            (self.last_progress, self.is_suspect) = (Some(now), false);
        }
        self.queued = self.queued.saturating_add(1);
        Poll::Ready(())
    }
}

impl core::fmt::Debug for Sockets<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Sockets").field("successor", &self.successor).finish_non_exhaustive()
    }
}

/// Returns whether all datagrams have left the socket. If not, the task is woken when one leaves.
fn is_empty(socket: &mut UdpSocket<'_>, cx: &mut Context<'_>) -> bool {
    pin!(socket.flush()).poll(cx).is_ready()
}

fn address(endpoint: IpEndpoint) -> SocketAddr {
    SocketAddr::new(endpoint.addr.into(), endpoint.port)
}

/// Returns the address for embassy-net, or `None` if the network does not support its family.
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
