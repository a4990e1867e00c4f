//! The plugin point: sees, filters and injects what passes through a peer.
//!
//! A [`Hook`] is sans-IO like the peer. [`Hooked`] holds a peer and a hook, and has the verbs of both: each datagram and
//! each event passes the hook first. Two hooks make one: a pair of hooks is a hook. A peer without hooks pays nothing.

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
    /// It goes on.
    #[default]
    Pass,
    /// It ends here.
    Drop,
}

impl Verdict {
    /// Drops what either drops.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Pass, Self::Pass) => Self::Pass,
            (Self::Drop, _) | (_, Self::Drop) => Self::Drop,
        }
    }

    /// Asks `next` about what passes.
    #[must_use]
    pub fn and_then(self, next: impl FnOnce() -> Self) -> Self {
        match self {
            Self::Pass => next(),
            Self::Drop => Self::Drop,
        }
    }
}

/// A message that a hook delivers to the application as if the other peer of a connection had sent it.
#[derive(Clone, Copy, Debug)]
pub struct Injected<'h, P: Protocol> {
    /// The connection. What is for one that is gone is dropped.
    pub id: ConnectionId,
    /// How it should seem to have travelled.
    pub delivery: P::Delivery,
    /// Its bytes. What is empty is dropped.
    pub message: &'h [u8],
}

/// Watches a peer. Every method may be left out. The time that it is given never steps back.
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
    /// A datagram arrived. Dropped, the peer never sees it.
    fn on_received(&mut self, now: Instant, from: SocketAddr, datagram: &[u8]) -> Verdict {
        let _ = (now, from, datagram);
        Verdict::Pass
    }

    /// A datagram is about to be sent. Dropped, it counts as lost on the way.
    fn on_transmit(&mut self, now: Instant, to: SocketAddr, datagram: &[u8]) -> Verdict {
        let _ = (now, to, datagram);
        Verdict::Pass
    }

    /// The application is about to get an event. If it is dropped, the application never gets it.
    fn on_event(&mut self, now: Instant, event: &Event<'_, P>) -> Verdict {
        let _ = (now, event);
        Verdict::Pass
    }

    /// Whether [`on_event`](Self::on_event) and [`inject`](Self::inject) are to be called. A hook that answers no spares each
    /// event the way to it.
    fn watches_events(&self) -> bool {
        true
    }

    /// Offers `take` a message that the application is to get as if it had arrived: the oldest, or the oldest for the
    /// connection `of`. `take` returns whether it was delivered; if it was not, it stays the first. It passes no hook again. This is
    /// asked before each event that passes [`on_event`](Self::on_event), so that what replaces a message comes in its place;
    /// and `take` is called at the most once.
    fn inject(&mut self, of: Option<ConnectionId>, take: &mut dyn FnMut(Injected<'_, P>) -> bool) {
        let _ = (of, take);
    }

    /// The application sends a message. Dropped, [`Hooked::send`] says that it was refused.
    fn on_send(&mut self, now: Instant, id: ConnectionId, message: &[u8], delivery: P::Delivery) -> Verdict {
        let _ = (now, id, message, delivery);
        Verdict::Pass
    }

    /// Called before the output of the peer is taken: the time to send messages of its own.
    fn update(&mut self, now: Instant, peer: &mut Peer<'_, P>) {
        let _ = (now, peer);
    }

    /// When [`update`](Self::update) wants to be called next, if ever.
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
}

/// No hook.
impl<P: Protocol> Hook<P> for () {
    fn watches_events(&self) -> bool {
        false
    }
}

/// A hook of any type, for drivers that are the same with each.
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

/// What the first drops the second is not shown.
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

/// A peer whose datagrams and events pass a hook. [`Hook`] has an example.
#[derive(Debug)]
pub struct Hooked<'a, P: Protocol, H> {
    /// The peer. What is called on it directly passes no hook; datagrams and events pass if they go through this.
    pub peer: Peer<'a, P>,
    /// The hook.
    pub hook: H,
}

impl<'a, P: Protocol, H: Hook<P>> Hooked<'a, P, H> {
    /// Lets a hook watch a peer.
    #[must_use]
    pub const fn new(peer: Peer<'a, P>, hook: H) -> Self {
        Self { peer, hook }
    }

    /// Moves the clock; it never steps back, as that of the peer.
    fn advance(&mut self, now: Instant) -> Instant {
        self.peer.advance(now);
        self.peer.last_now
    }

    /// As [`Peer::send`], through the hook.
    ///
    /// # Errors
    /// As [`Peer::send`], and [`SendError::Filtered`] when the hook drops the message.
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

    /// As [`Peer::send_vec`], through the hook.
    ///
    /// # Errors
    /// As [`Peer::send_vec`], and [`SendError::Filtered`] when the hook drops the message.
    #[cfg(feature = "hand-over")]
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

    /// As [`Peer::poll_event`], through the hook.
    pub fn poll_event(&mut self) -> Option<Event<'_, P>> {
        if !self.hook.watches_events() {
            return self.peer.poll_event();
        }
        self.peer.poll_event_through(&mut self.hook, None, Peer::next)
    }

    /// As [`Peer::poll_readable`]. The hook may drop all events of the connection. A message that it injects makes no connection
    /// readable: [`poll_event`](Self::poll_event) and [`poll_event_of`](Self::poll_event_of) return it.
    pub fn poll_readable(&mut self) -> Option<ConnectionId> {
        self.peer.poll_readable()
    }

    /// As [`Peer::poll_event_of`], through the hook.
    pub fn poll_event_of(&mut self, id: ConnectionId) -> Option<Event<'_, P>> {
        if !self.hook.watches_events() {
            return self.peer.poll_event_of(id);
        }
        self.peer.poll_event_through(&mut self.hook, Some(id), |peer| peer.next_of_id(id))
    }

    /// As [`Peer::poll_unconnected`], through the hook.
    pub fn poll_unconnected(&mut self) -> Option<Event<'_, P>> {
        self.poll_unconnected_of(|_| true)
    }

    /// As [`Peer::poll_pong`], through the hook.
    pub fn poll_pong(&mut self) -> Option<Event<'_, P>> {
        self.poll_unconnected_of(UnconnectedKind::is_pong)
    }

    /// As [`Peer::poll_out_of_band`], through the hook.
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
