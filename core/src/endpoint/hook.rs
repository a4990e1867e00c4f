//! Hooks, which inspect and filter the traffic of a peer and inject messages.
//!
//! A [`Hook`] is sans-IO like the peer. [`Hooked`] combines a peer and a hook and has the methods of both: each
//! datagram and each event passes through the hook first. A tuple of two hooks is a hook. A peer without hooks has no
//! overhead.

use core::net::SocketAddr;

use super::event::Event;
use super::protocol::{Peer, Protocol, UnconnectedEvents};
use super::types::{ConnectionId, Receipt, SendError};
use crate::machine::{Machine, Transmit};
use crate::time::Instant;

/// The decision of a hook about a datagram, an event or a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Verdict {
    /// Continue processing.
    #[default]
    Pass,
    /// Drop the datagram, event or message.
    Drop,
}

impl Verdict {
    /// Returns `Drop` if either verdict is `Drop`.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Pass, Self::Pass) => Self::Pass,
            (Self::Drop, _) | (_, Self::Drop) => Self::Drop,
        }
    }

    /// Returns `Drop` if this verdict is `Drop`, and otherwise the verdict of `next`.
    #[must_use]
    pub fn and_then(self, next: impl FnOnce() -> Self) -> Self {
        match self {
            Self::Pass => next(),
            Self::Drop => Self::Drop,
        }
    }
}

/// A message that a hook delivers to the application as if it had been received on a connection.
#[derive(Clone, Copy, Debug)]
pub struct Injected<'h, P: Protocol> {
    /// The connection; if it no longer exists, the message is dropped.
    pub id: ConnectionId,
    /// The delivery options that the application sees.
    pub delivery: P::Delivery,
    /// The message. An empty message is dropped.
    pub message: &'h [u8],
}

/// Inspects and filters the traffic of a peer.
///
/// Every method has a default. The times passed to a hook are monotonic.
///
/// ```
/// use core::net::SocketAddr;
/// use rakwire::{Instant, Machine};
/// use rakwire::endpoint::{Hook, Protocol, Verdict};
/// use rakwire::raknet::{Config, Hooked, Peer, Resources};
///
/// /// Drops and counts datagrams from one address.
/// struct Firewall {
///     blocked: SocketAddr,
///     dropped: u64,
/// }
///
/// impl<P: Protocol> Hook<P> for Firewall {
///     fn on_received(&mut self, _now: Instant, from: SocketAddr, _datagram: &[u8]) -> Verdict {
///         if from.ip() != self.blocked.ip() {
///             return Verdict::Pass;
///         }
///         self.dropped += 1;
///         Verdict::Drop
///     }
/// }
///
/// let mut resources = Resources::<1, 32, 128>::new();
/// let peer = Peer::new(&mut resources, Config::new([7; 32]));
/// let (blocked, other) = ("192.0.2.1:1".parse()?, "192.0.2.2:1".parse()?);
/// let mut hooked = Hooked::new(peer, Firewall { blocked, dropped: 0 });
/// hooked.handle_datagram(Instant::ZERO, blocked, b"hello");
/// hooked.handle_datagram(Instant::ZERO, other, b"hello");
/// assert_eq!((hooked.hook.dropped, hooked.peer.stats().datagrams_received), (1, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Hook<P: Protocol> {
    /// Inspects a received datagram. `Verdict::Drop` hides it from the peer.
    fn on_received(&mut self, now: Instant, from: SocketAddr, datagram: &[u8]) -> Verdict {
        let _ = (now, from, datagram);
        Verdict::Pass
    }

    /// Inspects a datagram before it is sent. `Verdict::Drop` discards it, as if the network had lost it.
    fn on_transmit(&mut self, now: Instant, to: SocketAddr, datagram: &[u8]) -> Verdict {
        let _ = (now, to, datagram);
        Verdict::Pass
    }

    /// Inspects an event before the application gets it. `Verdict::Drop` hides it from the application.
    fn on_event(&mut self, now: Instant, event: &Event<'_, P>) -> Verdict {
        let _ = (now, event);
        Verdict::Pass
    }

    /// Returns true if the hook needs calls of [`on_event`](Self::on_event) and [`inject`](Self::inject).
    ///
    /// Return false to save two calls per event.
    fn watches_events(&self) -> bool {
        true
    }

    /// Offers `take` the oldest message to deliver to the application as if it had been received.
    ///
    /// If `of` is set, it offers the oldest message for that connection. `take` must be called at most once. It
    /// returns true if the message was delivered; otherwise keep the message, and offer it again at the next call. An
    /// injected message passes through no hook again.
    ///
    /// `inject` is called before each event that passes through [`on_event`](Self::on_event), so a replacement is
    /// delivered in place of the dropped message.
    fn inject(&mut self, of: Option<ConnectionId>, take: &mut dyn FnMut(Injected<'_, P>) -> bool) {
        let _ = (of, take);
    }

    /// Inspects a message that the application sends. On `Verdict::Drop`, [`Hooked::send`] returns an error.
    fn on_send(&mut self, now: Instant, id: ConnectionId, message: &[u8], delivery: P::Delivery) -> Verdict {
        let _ = (now, id, message, delivery);
        Verdict::Pass
    }

    /// Called before datagrams and events are polled from the peer, so that the hook can send its own messages.
    fn update(&mut self, now: Instant, peer: &mut Peer<'_, P>) {
        let _ = (now, peer);
    }

    /// Returns when to call [`update`](Self::update) next, or `None`.
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
}

/// A hook that passes all traffic.
impl<P: Protocol> Hook<P> for () {
    fn watches_events(&self) -> bool {
        false
    }
}

/// A hook of dynamic type, for drivers that are not generic over hooks.
#[cfg(feature = "alloc")]
impl<P: Protocol, H: Hook<P> + ?Sized> Hook<P> for alloc::boxed::Box<H> {
    fn on_received(&mut self, now: Instant, from: SocketAddr, datagram: &[u8]) -> Verdict {
        (**self).on_received(now, from, datagram)
    }

    fn on_transmit(&mut self, now: Instant, to: SocketAddr, datagram: &[u8]) -> Verdict {
        (**self).on_transmit(now, to, datagram)
    }

    fn on_event(&mut self, now: Instant, event: &Event<'_, P>) -> Verdict {
        (**self).on_event(now, event)
    }

    fn watches_events(&self) -> bool {
        (**self).watches_events()
    }

    fn inject(&mut self, of: Option<ConnectionId>, take: &mut dyn FnMut(Injected<'_, P>) -> bool) {
        (**self).inject(of, take);
    }

    fn on_send(&mut self, now: Instant, id: ConnectionId, message: &[u8], delivery: P::Delivery) -> Verdict {
        (**self).on_send(now, id, message, delivery)
    }

    fn update(&mut self, now: Instant, peer: &mut Peer<'_, P>) {
        (**self).update(now, peer);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        (**self).poll_timeout()
    }
}

/// Hooks in sequence: the second does not see what the first drops.
impl<P: Protocol, A: Hook<P>, B: Hook<P>> Hook<P> for (A, B) {
    fn on_received(&mut self, now: Instant, from: SocketAddr, datagram: &[u8]) -> Verdict {
        self.0.on_received(now, from, datagram).and_then(|| self.1.on_received(now, from, datagram))
    }

    fn on_transmit(&mut self, now: Instant, to: SocketAddr, datagram: &[u8]) -> Verdict {
        self.0.on_transmit(now, to, datagram).and_then(|| self.1.on_transmit(now, to, datagram))
    }

    fn on_event(&mut self, now: Instant, event: &Event<'_, P>) -> Verdict {
        self.0.on_event(now, event).and_then(|| self.1.on_event(now, event))
    }

    fn inject(&mut self, of: Option<ConnectionId>, take: &mut dyn FnMut(Injected<'_, P>) -> bool) {
        let mut is_offered = false;
        self.0.inject(of, &mut |injected| {
            is_offered = true;
            take(injected)
        });
        if !is_offered {
            self.1.inject(of, take);
        }
    }

    fn watches_events(&self) -> bool {
        self.0.watches_events() || self.1.watches_events()
    }

    fn on_send(&mut self, now: Instant, id: ConnectionId, message: &[u8], delivery: P::Delivery) -> Verdict {
        self.0.on_send(now, id, message, delivery).and_then(|| self.1.on_send(now, id, message, delivery))
    }

    fn update(&mut self, now: Instant, peer: &mut Peer<'_, P>) {
        self.0.update(now, peer);
        self.1.update(now, peer);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        [self.0.poll_timeout(), self.1.poll_timeout()].into_iter().flatten().min()
    }
}

/// A peer with a hook for its datagrams and events. [`Hook`] has an example.
#[derive(Debug)]
pub struct Hooked<'a, P: Protocol, H> {
    /// The peer. Its own methods bypass the hook, so call those of [`Hooked`] instead.
    pub peer: Peer<'a, P>,
    /// The hook.
    pub hook: H,
}

impl<'a, P: Protocol, H: Hook<P>> Hooked<'a, P, H> {
    /// Attaches a hook to a peer.
    #[must_use]
    pub const fn new(peer: Peer<'a, P>, hook: H) -> Self {
        Self { peer, hook }
    }

    /// Advances the monotonic clock of the hook.
    fn advance(&mut self, now: Instant) -> Instant {
        self.peer.advance(now);
        self.peer.last_now
    }

    /// Sends a message through the hook, like [`Peer::send`].
    ///
    /// # Errors
    ///
    /// The errors of [`Peer::send`], and [`SendError::Filtered`] if the hook drops the message.
    pub fn send(
        &mut self,
        now: Instant,
        id: ConnectionId,
        message: &[u8],
        delivery: P::Delivery,
    ) -> Result<Option<Receipt>, SendError> {
        let now = self.advance(now);
        match self.hook.on_send(now, id, message, delivery) {
            Verdict::Pass => self.peer.send(now, id, message, delivery),
            Verdict::Drop => Err(SendError::Filtered),
        }
    }

    /// Sends a message through the hook, like [`Peer::send_vec`].
    ///
    /// # Errors
    ///
    /// The errors of [`Peer::send_vec`], and [`SendError::Filtered`] if the hook drops the message.
    #[cfg(feature = "zero-copy")]
    pub fn send_vec(
        &mut self,
        now: Instant,
        id: ConnectionId,
        message: &mut alloc::vec::Vec<u8>,
        delivery: P::Delivery,
    ) -> Result<Option<Receipt>, SendError> {
        let now = self.advance(now);
        match self.hook.on_send(now, id, message, delivery) {
            Verdict::Pass => self.peer.send_vec(now, id, message, delivery),
            Verdict::Drop => Err(SendError::Filtered),
        }
    }

    /// Returns the next event that the hook passes, like [`Peer::poll_event`].
    pub fn poll_event(&mut self) -> Option<Event<'_, P>> {
        if !self.hook.watches_events() {
            return self.peer.poll_event();
        }
        self.peer.poll_event_through(&mut self.hook, None, Peer::next)
    }

    /// Returns the next readable connection, like [`Peer::poll_readable`].
    ///
    /// It may have no event left, because the hook may drop all of them. An injected message does not make a
    /// connection readable; [`poll_event`](Self::poll_event) and [`poll_event_of`](Self::poll_event_of) return it.
    pub fn poll_readable(&mut self) -> Option<ConnectionId> {
        self.peer.poll_readable()
    }

    /// Returns the next event of one connection that the hook passes, like [`Peer::poll_event_of`].
    pub fn poll_event_of(&mut self, id: ConnectionId) -> Option<Event<'_, P>> {
        if !self.hook.watches_events() {
            return self.peer.poll_event_of(id);
        }
        self.peer.poll_event_through(&mut self.hook, Some(id), |peer| peer.next_of_id(id))
    }

    /// Returns the next `wanted` event of an unconnected peer that the hook passes, like [`Peer::poll_unconnected`].
    pub fn poll_unconnected(&mut self, wanted: UnconnectedEvents) -> Option<Event<'_, P>> {
        self.peer.poll_unconnected_through(&mut self.hook, wanted)
    }
}

impl<P: Protocol, H: Hook<P>> Machine for Hooked<'_, P, H> {
    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, datagram: &[u8]) {
        let now = self.advance(now);
        if self.hook.on_received(now, from, datagram) == Verdict::Pass {
            self.peer.handle_datagram(now, from, datagram);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        let now = self.advance(now);
        self.peer.handle_timeout(now);
        self.hook.update(now, &mut self.peer);
    }

    fn poll_transmit<'b>(&mut self, now: Instant, buffer: &'b mut [u8]) -> Option<Transmit<'b>> {
        let now = self.advance(now);
        self.hook.update(now, &mut self.peer);
        let (to, length) = loop {
            let transmit = self.peer.poll_transmit(now, buffer)?;
            if self.hook.on_transmit(now, transmit.to, transmit.payload) == Verdict::Pass {
                break (transmit.to, transmit.payload.len());
            }
        };
        Some(Transmit { to, payload: buffer.get(..length)? })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        [self.peer.poll_timeout(), self.hook.poll_timeout()].into_iter().flatten().min()
    }
}
