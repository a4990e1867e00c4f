//! Ready events: several peers agree that all of them are ready.
//!
//! Each peer reports when it is ready for an event, such as the start of a round, and names the peers that it waits
//! for. The event is completed at a peer when three conditions hold. The peer is ready, all peers that it waits for
//! are ready, and each of them reports that all of its own awaited peers are ready. The messages are those of
//! RakNet's ready event plugin: `docs/plugins/ready.md`.
//!
//! ```
//! use rakwire::endpoint::PluginHost;
//! use rakwire::raknet::{Config, Hooked, Peer, RakNet, Resources};
//! use rakwire_plugins::ready::{EventId, ReadyEvents};
//!
//! const START: EventId = EventId(1);
//!
//! let mut ready = ReadyEvents::<4, 8>::new();
//! ready.wait_for_all(START)?; // all present and future connections
//! let mut host = PluginHost::<_, 1>::new();
//! let key = host.attach::<RakNet>(ready)?;
//!
//! let mut resources = Resources::<8, 64, 128>::new();
//! let mut peer = Hooked::new(Peer::new(&mut resources, Config::new([7; 32])), host);
//! let ready = peer.hook.get_mut(key).ok_or("the plugin is not attached")?;
//! ready.set(START, true)?;
//! assert_eq!(ready.poll_completed(), Some(START), "there are no other peers");
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

/// The error for an event beyond the maximum number: remove an event, or create the plugin with a larger `EVENTS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyEvents;

impl core::fmt::Display for TooManyEvents {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("the maximum number of events exists; remove one, or increase EVENTS")
    }
}

impl core::error::Error for TooManyEvents {}

/// Counters of the plugin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadyStats {
    /// Messages that are too short.
    pub malformed: u64,
    /// Messages about unknown events, or from peers for which the event does not wait.
    pub unexpected: u64,
    /// Connections that are ignored because the plugin has fewer slots than the peer has connections.
    pub over_capacity: u64,
}

/// The plugin for up to `EVENTS` events, each with up to `PEERS` remote peers.
///
/// `PEERS` is the number of connections that the peer can have. The module documentation has an example.
#[derive(Debug)]
pub struct ReadyEvents<const EVENTS: usize, const PEERS: usize> {
    events: Vec<Event<PEERS>, EVENTS>,
    connected: BySlot<(), PEERS>,
    delivery: Delivery,
    stats: ReadyStats,
}

impl<const EVENTS: usize, const PEERS: usize> ReadyEvents<EVENTS, PEERS> {
    /// Creates a plugin without events. Its messages are sent reliably and in order on channel 0.
    #[must_use]
    pub const fn new() -> Self {
        Self::with_delivery(Delivery::RELIABLE_ORDERED)
    }

    /// Creates a plugin that sends its messages with another delivery. The delivery should be reliable and ordered;
    /// otherwise an outdated status may replace a newer one.
    #[must_use]
    pub const fn with_delivery(delivery: Delivery) -> Self {
        let stats = ReadyStats { malformed: 0, unexpected: 0, over_capacity: 0 };
        Self { events: Vec::new(), connected: BySlot::new(), delivery, stats }
    }

    /// Sets whether this peer is ready for an event. It has no effect after [`force`](Self::force).
    ///
    /// # Errors
    /// Returns [`TooManyEvents`] if the event is new and the maximum is reached.
    pub fn set(&mut self, event: EventId, is_ready: bool) -> Result<(), TooManyEvents> {
        self.create(event)?.set(is_ready);
        Ok(())
    }

    /// Completes an event here and at all awaited peers, even if some are not ready.
    ///
    /// # Errors
    /// Returns [`TooManyEvents`] if the event is new and the maximum is reached.
    pub fn force(&mut self, event: EventId) -> Result<(), TooManyEvents> {
        self.create(event)?.force();
        Ok(())
    }

    /// Waits for a peer, which should also wait for this peer. Returns false if the connection is in a slot beyond
    /// `PEERS`.
    ///
    /// # Errors
    /// Returns [`TooManyEvents`] if the event is new and the maximum is reached.
    pub fn wait_for(&mut self, event: EventId, id: ConnectionId) -> Result<bool, TooManyEvents> {
        Ok(self.create(event)?.wait_for(id))
    }

    /// Waits for all connected peers, and for those that connect later.
    ///
    /// # Errors
    /// Returns [`TooManyEvents`] if the event is new and the maximum is reached.
    pub fn wait_for_all(&mut self, event: EventId) -> Result<(), TooManyEvents> {
        self.create(event)?;
        let Some(event) = self.events.iter_mut().find(|other| other.id == event) else { return Ok(()) };
        event.waits_for_all = true;
        for (id, ()) in self.connected.iter() {
            event.wait_for(id);
        }
        Ok(())
    }

    /// Stops waiting for a peer; returns false if the peer was not awaited.
    pub fn stop_waiting_for(&mut self, event: EventId, id: ConnectionId) -> bool {
        self.find_mut(event).is_some_and(|event| event.stop_waiting_for(id))
    }

    /// Removes an event; returns false if it is unknown. The other peers are not notified.
    pub fn remove(&mut self, event: EventId) -> bool {
        let at = self.events.iter().position(|other| other.id == event);
        at.map(|at| self.events.swap_remove(at)).is_some()
    }

    /// Returns this peer's status for an event.
    #[must_use]
    pub fn status(&self, event: EventId) -> Option<Status> {
        self.find(event).map(|event| event.status)
    }

    /// Returns the status that a remote peer has reported for an event; `None` if the peer is not awaited.
    #[must_use]
    pub fn status_of(&self, event: EventId, id: ConnectionId) -> Option<Status> {
        self.find(event)?.remotes.get(id).map(|remote| remote.received)
    }

    /// Returns true if the event is completed.
    ///
    /// That is the case if this peer and all peers that it waits for are ready, and all of those report the same.
    #[must_use]
    pub fn is_completed(&self, event: EventId) -> bool {
        self.find(event).is_some_and(Event::is_completed)
    }

    /// Returns true if some peers have found that all peers are ready and others have not yet. From then on, the
    /// application should no longer let players withdraw.
    #[must_use]
    pub fn is_completing(&self, event: EventId) -> bool {
        self.find(event).is_some_and(Event::is_completing)
    }

    /// Returns an event that was completed since the last call.
    ///
    /// An event may become incomplete again, because a peer withdraws or joins late. It is then returned again at its
    /// next completion.
    pub fn poll_completed(&mut self) -> Option<EventId> {
        let event = self.events.iter_mut().find(|event| event.is_unreported)?;
        event.is_unreported = false;
        Some(event.id)
    }

    /// Returns the counters.
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

    /// Returns the event, and creates it if it is new.
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
            self.stats.over_capacity = self.stats.over_capacity.saturating_add(1);
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
