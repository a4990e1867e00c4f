//! Ready events: several peers agree that all of them are ready.
//!
//! Each peer says for itself whether it is ready for an event, such as the start of a round, and names those that it waits for.
//! It is completed where this peer is ready, all that it waits for are, and each of them knows the same of those that it waits
//! for. The messages are those of RakNet's ready event plugin: `docs/plugins/ready.md`.
//!
//! ```
//! use rakwire::endpoint::PluginHost;
//! use rakwire::raknet::{Config, Hooked, Peer, RakNet, Resources};
//! use rakwire_plugins::ready::{EventId, ReadyEvents};
//!
//! const START: EventId = EventId(1);
//!
//! let mut ready = ReadyEvents::<4, 8>::new();
//! ready.wait_for_all(START)?; // everybody who is connected or will be
//! let mut host = PluginHost::<_, 1>::new();
//! let key = host.attach::<RakNet>(ready)?;
//!
//! let mut resources = Resources::<8, 64, 128>::new();
//! let mut peer = Hooked::new(Peer::new(&mut resources, Config::new([7; 32])), host);
//! let ready = peer.hook.get_mut(key).ok_or("it is attached")?;
//! ready.set(START, true)?;
//! assert_eq!(ready.poll_completed(), Some(START), "there is nobody else");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod event;
mod wire;

use core::net::SocketAddr;

use heapless::Vec;
use rakwire::endpoint::{BySlot, ConnectionId, MessageIds, MessageSender, Plugin, Side, Verdict};
use rakwire::raknet::{Delivery, DisconnectReason, Guid, RakNet};
use rakwire::{Chunks, Instant};

use self::event::Event;
use crate::bytes;

pub use self::wire::{EventId, LENGTH, MESSAGE_IDS, Message, Status};

/// There is no room for another event: remove one, or give the plugin more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyEvents;

impl core::fmt::Display for TooManyEvents {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("there is no room for another event; remove one first")
    }
}

impl core::error::Error for TooManyEvents {}

/// Counters of the plugin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadyStats {
    /// Messages that were shorter than they have to be.
    pub malformed: u64,
    /// Messages about events that are unknown here, or of peers that nobody waits for.
    pub unexpected: u64,
    /// Connections that were left out, since the plugin was made for fewer than the peer can have.
    pub without_room: u64,
}

/// The plugin: up to `EVENTS` events, each with up to `PEERS` other peers, which is the number of connections that the peer
/// can have. The module has an example.
#[derive(Debug)]
pub struct ReadyEvents<const EVENTS: usize, const PEERS: usize> {
    events: Vec<Event<PEERS>, EVENTS>,
    connected: BySlot<(), PEERS>,
    delivery: Delivery,
    stats: ReadyStats,
}

impl<const EVENTS: usize, const PEERS: usize> ReadyEvents<EVENTS, PEERS> {
    /// A plugin without events, whose messages travel reliably and in order on channel 0.
    #[must_use]
    pub const fn new() -> Self {
        Self::with_delivery(Delivery::RELIABLE_ORDERED)
    }

    /// The same with another delivery. It should be reliable and ordered: a status that overtakes a later one would stay.
    #[must_use]
    pub const fn with_delivery(delivery: Delivery) -> Self {
        let stats = ReadyStats { malformed: 0, unexpected: 0, without_room: 0 };
        Self { events: Vec::new(), connected: BySlot::new(), delivery, stats }
    }

    /// Says whether this peer is ready for an event. That changes nothing once it was forced.
    ///
    /// # Errors
    /// [`TooManyEvents`] if the event is new.
    pub fn set(&mut self, event: EventId, is_ready: bool) -> Result<(), TooManyEvents> {
        self.create(event)?.set(is_ready);
        Ok(())
    }

    /// Completes an event here and at all who are waited for, whoever is ready.
    ///
    /// # Errors
    /// [`TooManyEvents`] if the event is new.
    pub fn force(&mut self, event: EventId) -> Result<(), TooManyEvents> {
        self.create(event)?.force();
        Ok(())
    }

    /// Waits for a peer; it should wait for this one too. False if the connection is in a slot beyond `PEERS`.
    ///
    /// # Errors
    /// [`TooManyEvents`] if the event is new.
    pub fn wait_for(&mut self, event: EventId, id: ConnectionId) -> Result<bool, TooManyEvents> {
        Ok(self.create(event)?.wait_for(id))
    }

    /// Waits for all peers that are connected, and for those that will be.
    ///
    /// # Errors
    /// [`TooManyEvents`] if the event is new.
    pub fn wait_for_all(&mut self, event: EventId) -> Result<(), TooManyEvents> {
        self.create(event)?;
        let Some(event) = self.events.iter_mut().find(|other| other.id == event) else { return Ok(()) };
        event.waits_for_all = true;
        for (id, ()) in self.connected.iter() {
            event.wait_for(id);
        }
        Ok(())
    }

    /// Waits no longer for a peer; false if it was not waited for.
    pub fn stop_waiting_for(&mut self, event: EventId, id: ConnectionId) -> bool {
        self.find_mut(event).is_some_and(|event| event.stop_waiting_for(id))
    }

    /// Forgets an event; false if it was unknown. The other peers are told nothing.
    pub fn remove(&mut self, event: EventId) -> bool {
        let at = self.events.iter().position(|other| other.id == event);
        at.map(|at| self.events.swap_remove(at)).is_some()
    }

    /// What this peer says of an event.
    #[must_use]
    pub fn status(&self, event: EventId) -> Option<Status> {
        self.find(event).map(|event| event.status)
    }

    /// What another peer has said of an event; nothing if it is not waited for.
    #[must_use]
    pub fn status_of(&self, event: EventId, id: ConnectionId) -> Option<Status> {
        self.find(event)?.remotes.get(id).map(|remote| remote.received)
    }

    /// Whether this peer is ready, all that it waits for are, and all of them have said that they know.
    #[must_use]
    pub fn is_completed(&self, event: EventId) -> bool {
        self.find(event).is_some_and(Event::is_completed)
    }

    /// Whether some peers know that all are ready and others do not yet: the time to let nobody change their mind.
    #[must_use]
    pub fn is_completing(&self, event: EventId) -> bool {
        self.find(event).is_some_and(Event::is_completing)
    }

    /// An event that was completed since it was asked for last. One that no longer is, since somebody has changed their mind
    /// or has come late, is named again when it is once more.
    pub fn poll_completed(&mut self) -> Option<EventId> {
        let event = self.events.iter_mut().find(|event| event.is_untold)?;
        event.is_untold = false;
        Some(event.id)
    }

    /// The counters.
    #[must_use]
    pub const fn stats(&self) -> ReadyStats {
        self.stats
    }

    fn find(&self, id: EventId) -> Option<&Event<PEERS>> {
        self.events.iter().find(|event| event.id == id)
    }

    fn find_mut(&mut self, id: EventId) -> Option<&mut Event<PEERS>> {
        self.events.iter_mut().find(|event| event.id == id)
    }

    /// The event, which is made if it is new.
    fn create(&mut self, id: EventId) -> Result<&mut Event<PEERS>, TooManyEvents> {
        if self.find(id).is_none() {
            self.events.push(Event::new(id)).map_err(|_| TooManyEvents)?;
        }
        self.find_mut(id).ok_or(TooManyEvents)
    }
}

impl<const EVENTS: usize, const PEERS: usize> Default for ReadyEvents<EVENTS, PEERS> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const EVENTS: usize, const PEERS: usize> Plugin<RakNet> for ReadyEvents<EVENTS, PEERS> {
    fn message_ids(&self) -> MessageIds {
        MessageIds::of(&MESSAGE_IDS)
    }

    fn on_connected(
        &mut self,
        _now: Instant,
        id: ConnectionId,
        _remote: SocketAddr,
        _guid: Guid,
        _side: Side,
    ) {
        if !self.connected.insert(id, ()) {
            self.stats.without_room = self.stats.without_room.saturating_add(1);
        }
        for event in self.events.iter_mut().filter(|event| event.waits_for_all) {
            event.wait_for(id);
        }
    }

    fn on_disconnected(&mut self, _now: Instant, id: ConnectionId, _reason: DisconnectReason) {
        self.connected.remove(id);
        for event in &mut self.events {
            event.stop_waiting_for(id);
        }
    }

    fn on_message(
        &mut self,
        _now: Instant,
        id: ConnectionId,
        _delivery: Delivery,
        message: &dyn Chunks,
    ) -> Verdict {
        let Some((message, event)) = bytes::first(message).and_then(Message::decode) else {
            self.stats.malformed = self.stats.malformed.saturating_add(1);
            return Verdict::Drop;
        };
        let is_expected = self.find_mut(event).is_some_and(|event| event.on_message(id, message));
        self.stats.unexpected = self.stats.unexpected.saturating_add(u64::from(!is_expected));
        Verdict::Drop
    }

    fn update(&mut self, _now: Instant, sender: &mut dyn MessageSender<RakNet>) {
        for event in &mut self.events {
            event.transmit(|id, bytes| sender.send(id, &bytes, self.delivery).is_ok());
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.events.iter().any(Event::is_due).then_some(Instant::ZERO)
    }
}
