//! Hooks, which inspect, filter and inject the traffic of a peer.
//!
//! A [`Hook`] is sans-IO like the peer. [`Hooked`] combines a peer and a hook, and has the methods of both: each
//! datagram and each event passes through the hook first. A pair of hooks is a hook. A peer without hooks has no
//! overhead.

use core::net::SocketAddr;

use super::event::Event;
use super::protocol::{Peer, Protocol, UnconnectedKind};
use super::types::{ConnectionId, Receipt, SendError};
use crate::machine::{Machine, Transmit};
use crate::time::Instant;

/// The decision of a hook about a datagram, an event or a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Verdict {
    /// It continues.
    #[default]
    Pass,
    /// It is dropped.
    Drop,
}

impl Verdict {
    /// Returns `Drop` if either is `Drop`.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Pass, Self::Pass) => Self::Pass,
            (Self::Drop, _) | (_, Self::Drop) => Self::Drop,
        }
    }

    /// Returns the verdict of `next`, unless this one is `Drop`.
    #[must_use]
    pub fn and_then(self, next: impl FnOnce() -> Self) -> Self {
        match self {
            Self::Pass => next(),
            Self::Drop => Self::Drop,
        }
    }
}

/// A message that a hook delivers to the application as if the remote peer of a connection had sent it.
#[derive(Clone, Copy, Debug)]
pub struct Injected<'h, P: Protocol> {
    /// The connection. A message for one that no longer exists is dropped.
    pub id: ConnectionId,
    /// The delivery that the application sees.
    pub delivery: P::Delivery,
    /// Its bytes. An empty message is dropped.
    pub message: &'h [u8],
}

/// Observes and filters the traffic of a peer.
///
/// All methods are optional. The time passed to it never decreases.
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
    /// Handles a received datagram. If it is dropped, the peer never sees it.
    fn on_received(&mut self, now: Instant, from: SocketAddr, datagram: &[u8]) -> Verdict {
        let _ = (now, from, datagram);
        Verdict::Pass
    }

    /// Handles a datagram about to be sent. If it is dropped, it counts as lost on the path.
    fn on_transmit(&mut self, now: Instant, to: SocketAddr, datagram: &[u8]) -> Verdict {
        let _ = (now, to, datagram);
        Verdict::Pass
    }

    /// Handles an event for the application. If it is dropped, the application never receives it.
    fn on_event(&mut self, now: Instant, event: &Event<'_, P>) -> Verdict {
        let _ = (now, event);
        Verdict::Pass
    }

    /// Returns true if [`on_event`](Self::on_event) and [`inject`](Self::inject) are to be called.
    ///
    /// Returning false saves two calls for each event.
    fn watches_events(&self) -> bool {
        true
    }

    /// Offers `take` a message to deliver to the application as if it had arrived.
    ///
    /// It is the oldest message, or the oldest one for the connection `of`. `take` returns true if the message was
    /// delivered; otherwise it remains the first. An injected message passes through no hook again. This is called
    /// before each event that passes through [`on_event`](Self::on_event), so that a replacement takes the place of the
    /// dropped message. `take` is called at most once.
    fn inject(&mut self, of: Option<ConnectionId>, take: &mut dyn FnMut(Injected<'_, P>) -> bool) {
        let _ = (of, take);
    }

    /// Handles a message that the application sends. If it is dropped, [`Hooked::send`] returns an error.
    fn on_send(&mut self, now: Instant, id: ConnectionId, message: &[u8], delivery: P::Delivery) -> Verdict {
        let _ = (now, id, message, delivery);
        Verdict::Pass
    }

    /// Called before the output of the peer is taken, so that the hook can send its own messages.
    fn update(&mut self, now: Instant, peer: &mut Peer<'_, P>) {
        let _ = (now, peer);
    }

    /// Returns when [`update`](Self::update) is to be called next, if ever.
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
}

/// The empty hook.
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

/// Datagrams, events and messages that the first hook drops are not shown to the second.
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

/// A peer that passes its datagrams and events through a hook. [`Hook`] has an example.
#[derive(Debug)]
pub struct Hooked<'a, P: Protocol, H> {
    /// The peer. Its own methods bypass the hook; call those of this type instead.
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

    /// Advances the clock, which never goes back, like that of the peer.
    fn advance(&mut self, now: Instant) -> Instant {
        self.peer.advance(now);
        self.peer.last_now
    }

    /// Sends a message like [`Peer::send`], through the hook.
    ///
    /// # Errors
    ///
    /// As [`Peer::send`], and [`SendError::Filtered`] if the hook drops the message.
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

    /// Sends a message like [`Peer::send_vec`], through the hook.
    ///
    /// # Errors
    ///
    /// As [`Peer::send_vec`], and [`SendError::Filtered`] if the hook drops the message.
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

    /// Returns the next event like [`Peer::poll_event`], through the hook.
    pub fn poll_event(&mut self) -> Option<Event<'_, P>> {
        if !self.hook.watches_events() {
            return self.peer.poll_event();
        }
        self.peer.poll_event_through(&mut self.hook, None, Peer::next)
    }

    /// Returns the next readable connection like [`Peer::poll_readable`].
    ///
    /// The hook may drop all events of the connection. An injected message makes no connection readable:
    /// [`poll_event`](Self::poll_event) and [`poll_event_of`](Self::poll_event_of) return it.
    pub fn poll_readable(&mut self) -> Option<ConnectionId> {
        self.peer.poll_readable()
    }

    /// Returns the next event like [`Peer::poll_event_of`], through the hook.
    pub fn poll_event_of(&mut self, id: ConnectionId) -> Option<Event<'_, P>> {
        if !self.hook.watches_events() {
            return self.peer.poll_event_of(id);
        }
        self.peer.poll_event_through(&mut self.hook, Some(id), |peer| peer.next_of_id(id))
    }

    /// Returns the next message like [`Peer::poll_unconnected`], through the hook.
    pub fn poll_unconnected(&mut self) -> Option<Event<'_, P>> {
        self.poll_unconnected_of(|_| true)
    }

    /// Returns the next pong like [`Peer::poll_pong`], through the hook.
    pub fn poll_pong(&mut self) -> Option<Event<'_, P>> {
        self.poll_unconnected_of(UnconnectedKind::is_pong)
    }

    /// Returns the next message like [`Peer::poll_out_of_band`], through the hook.
    pub fn poll_out_of_band(&mut self) -> Option<Event<'_, P>> {
        self.poll_unconnected_of(UnconnectedKind::is_message)
    }

    fn poll_unconnected_of(&mut self, wanted: fn(&UnconnectedKind) -> bool) -> Option<Event<'_, P>> {
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
