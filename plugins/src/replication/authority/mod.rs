//! The side that says how the entities are.

mod entity;
mod known;
mod peer;
mod scope;
mod stats;

use core::net::SocketAddr;

use heapless::Vec;
use rakwire::endpoint::{BySlot, ConnectionId, MessageIds, MessageSender, Plugin, Protocol, Side, Verdict};
use rakwire::wire::WireError;
use rakwire::{Chunks, Instant};

use self::entity::Entity;
use self::peer::{Peer, Tick};
pub use self::scope::{EntityInfo, EverythingInScope, Scope, SentBits};
pub use self::stats::PeerStats;
use super::class::{self, Class, ClassError};
use super::error::{SetError, SpawnError};
use super::id::NetworkId;
use super::received::Received;
use super::wire::{ACKNOWLEDGEMENT, Full, OVERHEAD_BITS, REPLY_ID, Reader, STATE, read_gamma, read_values};
use crate::bytes;

/// Counters of an authority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AuthorityStats {
    /// Messages that say nothing, or of ticks to come.
    pub malformed: u64,
    /// States of entities that their sender does not own.
    pub unauthorised: u64,
    /// Connections that were left out, since the plugin was made for fewer than the peer can have.
    pub without_room: u64,
}

/// The plugin of the side that says how the entities are: up to `PEERS` connections and `ENTITIES` entities of up to `FIELDS`
/// fields; short forms are used for what was acknowledged less than `HISTORY` ticks ago; messages of up to `BYTES` bytes.
/// [The module](super) has an example.
#[derive(Debug)]
pub struct Authority<
    P: Protocol,
    S,
    const PEERS: usize,
    const ENTITIES: usize,
    const FIELDS: usize,
    const HISTORY: usize,
    const BYTES: usize,
> {
    /// Who sees what.
    pub scope: S,
    classes: &'static [Class],
    entities: [Option<Entity<FIELDS, HISTORY>>; ENTITIES],
    generations: [u16; ENTITIES],
    peers: BySlot<Peer<ENTITIES>, PEERS>,
    due: Vec<(u32, u16), ENTITIES>,
    tick: u32,
    delivery: P::Delivery,
    stats: AuthorityStats,
}

impl<
    P: Protocol,
    S: Scope,
    const PEERS: usize,
    const ENTITIES: usize,
    const FIELDS: usize,
    const HISTORY: usize,
    const BYTES: usize,
> Authority<P, S, PEERS, ENTITIES, FIELDS, HISTORY, BYTES>
{
    /// An authority without entities. Its messages should travel unreliably: what is lost is not sent again, but what is true
    /// then.
    ///
    /// # Errors
    /// [`ClassError`].
    pub fn new(classes: &'static [Class], scope: S, delivery: P::Delivery) -> Result<Self, ClassError> {
        const { assert!(ENTITIES > 0 && ENTITIES <= 1 << 16 && HISTORY > 1) };
        class::check(classes, FIELDS, (BYTES * 8).saturating_sub(OVERHEAD_BITS))?;
        Ok(Self {
            scope,
            classes,
            entities: [const { None }; ENTITIES],
            generations: [0; ENTITIES],
            peers: BySlot::new(),
            due: Vec::new(),
            tick: 0,
            delivery,
            stats: AuthorityStats::default(),
        })
    }

    /// Makes an entity, which clients learn of at the next [tick](Self::tick). `handle` is the application's own number for it.
    ///
    /// # Errors
    /// [`SpawnError`].
    pub fn spawn(&mut self, class: u8, handle: u32, values: &[u32]) -> Result<NetworkId, SpawnError> {
        let fields = self.classes.get(usize::from(class)).ok_or(SpawnError::BadClass)?.fields;
        if fields.len() != values.len() {
            return Err(SpawnError::BadClass);
        }
        let place = self.entities.iter_mut().zip(&mut self.generations).zip(0..=u16::MAX);
        let free = place.into_iter().find(|((entity, _), _)| entity.is_none());
        let ((entity, generation), index) = free.ok_or(SpawnError::TooMany)?;
        *generation = generation.wrapping_add(1);
        let mut all = [0; FIELDS];
        for ((place, value), field) in all.iter_mut().zip(values).zip(fields) {
            *place = field.truncate(*value);
        }
        *entity = Some(Entity::new(*generation, class, handle, all));
        Ok(NetworkId { index, generation: *generation })
    }

    /// Ends an entity, which clients learn at the next tick; false if there is none of this name.
    pub fn despawn(&mut self, id: NetworkId) -> bool {
        let place = self.entities.get_mut(usize::from(id.index));
        place.and_then(|place| place.take_if(|entity| entity.generation == id.generation)).is_some()
    }

    /// Changes a field of an entity. Bits beyond its width are cut off.
    ///
    /// # Errors
    /// [`SetError`].
    pub fn set(&mut self, id: NetworkId, field: usize, value: u32) -> Result<(), SetError> {
        let classes = self.classes;
        let entity = self.find_mut(id).ok_or(SetError::Unknown)?;
        if entity.owner.is_some() {
            return Err(SetError::NotOwner);
        }
        let class = classes.get(usize::from(entity.class)).ok_or(SetError::Unknown)?;
        let width = class.fields.get(field).ok_or(SetError::NoField)?;
        *entity.values.get_mut(field).ok_or(SetError::NoField)? = width.truncate(value);
        Ok(())
    }

    /// Lets a client say how an entity is, or nobody but this authority. A client that leaves owns nothing any more. False if
    /// there is no such entity, or no such client.
    pub fn set_owner(&mut self, id: NetworkId, owner: Option<ConnectionId>) -> bool {
        if owner.is_some_and(|owner| self.peers.get(owner).is_none()) {
            return false;
        }
        self.find_mut(id).map(|entity| entity.set_owner(owner)).is_some()
    }

    /// An entity.
    #[must_use]
    pub fn get(&self, id: NetworkId) -> Option<EntityInfo<'_>> {
        let entity = self.entities.get(usize::from(id.index))?.as_ref();
        entity
            .filter(|entity| entity.generation == id.generation)
            .map(|entity| EntityInfo::of(id.index, entity))
    }

    /// The entities, in the order of their indices.
    pub fn iter(&self) -> impl Iterator<Item = EntityInfo<'_>> {
        let entities = (0..=u16::MAX).zip(&self.entities);
        entities.filter_map(|(index, entity)| Some(EntityInfo::of(index, entity.as_ref()?)))
    }

    /// The first entity that has this number of the application's.
    #[must_use]
    pub fn find(&self, handle: u32) -> Option<EntityInfo<'_>> {
        self.iter().find(|entity| entity.handle == handle)
    }

    /// Sends every client what has become of the entities since the last tick; returns the number of the tick, from 1 on. After
    /// 2^32 - 1 of them nothing more is sent. Have the driver run afterwards.
    pub fn tick(&mut self) -> u32 {
        let Some(tick) = self.tick.checked_add(1) else { return self.tick };
        self.tick = tick;
        self.entities.iter_mut().flatten().for_each(|entity| entity.on_tick(tick));
        self.peers.iter_mut().for_each(|(_, peer)| peer.is_due = peer.budget > 0);
        tick
    }

    /// Sends a client no more than so many bytes in a tick, `BYTES` at the most. Fewer than the longest entity of a class needs
    /// keep that from the client; one that gets none costs nothing. False if there is no such client.
    pub fn set_budget(&mut self, id: ConnectionId, bytes: usize) -> bool {
        self.peers.get_mut(id).map(|peer| peer.budget = bytes).is_some()
    }

    /// What a client was sent.
    #[must_use]
    pub fn peer_stats(&self, id: ConnectionId) -> Option<PeerStats> {
        self.peers.get(id).map(|peer| peer.stats)
    }

    /// The counters.
    #[must_use]
    pub const fn stats(&self) -> AuthorityStats {
        self.stats
    }

    fn find_mut(&mut self, id: NetworkId) -> Option<&mut Entity<FIELDS, HISTORY>> {
        let entity = self.entities.get_mut(usize::from(id.index))?.as_mut();
        entity.filter(|entity| entity.generation == id.generation)
    }

    /// A message of a client; nothing if it says nothing.
    fn on_reply(&mut self, id: ConnectionId, message: &[u8]) -> Option<()> {
        let (&[REPLY_ID, kind, a, b, c, d], rest) = message.split_first_chunk()? else { return None };
        let number = u32::from_be_bytes([a, b, c, d]);
        match kind {
            ACKNOWLEDGEMENT => {
                let received = Received::of(number, u32::from_be_bytes(rest.try_into().ok()?));
                self.peers.get_mut(id)?.on_acknowledgement(received, self.tick).then_some(())
            }
            STATE => {
                // Nothing of a message counts unless all of it says something.
                self.on_state(id, number, rest, false).ok()?;
                self.on_state(id, number, rest, true).ok()
            }
            _ => None,
        }
    }

    /// How a client says that its entities are.
    fn on_state(
        &mut self,
        from: ConnectionId,
        number: u32,
        records: &[u8],
        is_applied: bool,
    ) -> Result<(), WireError> {
        let mut reader = Reader::new(records);
        let (count, mut next) = (read_gamma(&mut reader)?, 0);
        for _ in 0..count {
            next += read_gamma(&mut reader)?;
            let name = Full::read_name(&mut reader)?;
            let class = self.classes.get(usize::from(name.class)).ok_or(WireError::BadValue)?;
            let mut values = [0; FIELDS];
            read_values(&mut reader, class, &mut values)?;
            let entity = self.entities.get_mut(next - 1).ok_or(WireError::BadValue)?.as_mut();
            let entity = entity.filter(|entity| {
                let is_named = (entity.generation, entity.class, entity.term)
                    == (name.generation, name.class, name.term);
                is_named && entity.owner == Some(from)
            });
            match entity {
                _ if !is_applied => {}
                Some(entity) if number > entity.owner_number => {
                    (entity.owner_number, entity.values) = (number, values);
                }
                Some(_) => {}
                None => self.stats.unauthorised = self.stats.unauthorised.saturating_add(1),
            }
        }
        Ok(())
    }
}

impl<
    P: Protocol,
    S: Scope,
    const PEERS: usize,
    const ENTITIES: usize,
    const FIELDS: usize,
    const HISTORY: usize,
    const BYTES: usize,
> Plugin<P> for Authority<P, S, PEERS, ENTITIES, FIELDS, HISTORY, BYTES>
{
    fn message_ids(&self) -> MessageIds {
        MessageIds::of(&[REPLY_ID])
    }

    fn on_connected(&mut self, _: Instant, id: ConnectionId, _: SocketAddr, _: P::Identity, _: Side) {
        if self.peers.get(id).is_none() && !self.peers.insert(id, Peer::new(BYTES)) {
            self.stats.without_room = self.stats.without_room.saturating_add(1);
        }
    }

    fn on_disconnected(&mut self, _now: Instant, id: ConnectionId, _reason: P::DisconnectReason) {
        self.peers.remove(id);
        let entities = self.entities.iter_mut().flatten();
        entities.filter(|entity| entity.owner == Some(id)).for_each(|entity| entity.set_owner(None));
    }

    fn on_message(&mut self, _: Instant, id: ConnectionId, _: P::Delivery, message: &dyn Chunks) -> Verdict {
        let mut buffer = [0; BYTES];
        let message = bytes::copy(message, &mut buffer);
        if message.and_then(|message| self.on_reply(id, message)).is_none() {
            self.stats.malformed = self.stats.malformed.saturating_add(1);
        }
        Verdict::Drop
    }

    fn update(&mut self, _now: Instant, sender: &mut dyn MessageSender<P>) {
        let mut buffer = [0; BYTES];
        let Self { scope, classes, entities, peers, due, tick, delivery, .. } = self;
        for (id, peer) in peers.iter_mut().filter(|(_, peer)| peer.is_due) {
            peer.is_due = false;
            let mut cx = Tick { tick: *tick, classes, entities, scope, due };
            let Some((length, chosen)) = peer.write(&mut cx, id, &mut buffer) else { continue };
            // What finds no room now is older than what the next tick sends.
            if sender.send(id, buffer.get(..length).unwrap_or_default(), *delivery).is_ok() {
                peer.report(&mut cx, id, &chosen);
                peer.on_sent(&chosen, *tick, length);
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.peers.iter().any(|(_, peer)| peer.is_due).then_some(Instant::ZERO)
    }
}
