//! The plugin of the authority, which owns the state of all entities.

mod entity;
mod known;
mod memory;
mod peer;
mod replies;
mod scope;
mod stats;
mod table;

use core::net::SocketAddr;

use rakwire::endpoint::{ConnectionId, MessageIds, MessageSender, Plugin, Protocol, Side, Verdict};
use rakwire::{Chunks, Instant};

use self::entity::Entity;
use self::known::Known;
use self::memory::Parts;
use self::peer::{ClientClasses, Peer, Tick, report};
use self::replies::Replies;
use self::table::Table;
#[cfg(feature = "alloc")]
use super::class::MAX_FIELDS;
use super::class::{self, Class, ClassError};
use super::error::{SetError, SpawnError};
use super::id::NetworkId;
use super::rows::row_mut;
use super::wire::{OVERHEAD_BITS, REPLY_ID, classes_of_authority};
use crate::bytes;

#[cfg(feature = "alloc")]
pub use self::memory::{AuthorityConfig, HeapAuthorityMemory};
pub use self::memory::{AuthorityMemory, FixedAuthorityMemory};
pub use self::scope::{EntityInfo, EverythingInScope, Scope, SentBits};
pub use self::stats::{AuthorityStats, PeerStats};

/// The interval in ticks at which the authority repeats its classes to a client that has not sent its own.
const GREETING_TICKS: u32 = 32;

/// The plugin of the authority, which owns the state of all entities.
///
/// `S` is the [`Scope`]. `M` is the memory: [`FixedAuthority`] has the sizes in its type, and
/// [`HeapAuthority`] takes them from an [`AuthorityConfig`]. [The module](super) has an example.
#[derive(Debug)]
pub struct Authority<P: Protocol, S, M> {
    /// Decides which client sees which entity.
    pub scope: S,
    classes: &'static [Class],
    fingerprint: u64,
    memory: M,
    tick: u32,
    delivery: P::Delivery,
    /// The latest client with different classes that has not been polled yet.
    mismatch: Option<ConnectionId>,
    stats: AuthorityStats,
}

/// An [`Authority`] without an allocator.
///
/// It has capacity for `PEERS` connections and `ENTITIES` entities of up to `FIELDS` fields. Short forms are
/// used if the last acknowledgement is less than `HISTORY` ticks old. Messages have up to `BYTES` bytes. All
/// lists are inline, and the value is usually created on a stack.
pub type FixedAuthority<
    P,
    S,
    const PEERS: usize,
    const ENTITIES: usize,
    const FIELDS: usize,
    const HISTORY: usize,
    const BYTES: usize,
> = Authority<P, S, FixedAuthorityMemory<PEERS, ENTITIES, FIELDS, HISTORY, BYTES>>;

/// An [`Authority`] on the heap, with sizes chosen at run time.
#[cfg(feature = "alloc")]
pub type HeapAuthority<P, S> = Authority<P, S, HeapAuthorityMemory>;

impl<
    P: Protocol,
    S: Scope,
    const PEERS: usize,
    const ENTITIES: usize,
    const FIELDS: usize,
    const HISTORY: usize,
    const BYTES: usize,
> FixedAuthority<P, S, PEERS, ENTITIES, FIELDS, HISTORY, BYTES>
{
    /// Creates an authority without entities. Use unreliable delivery: a lost update need not be resent, because the
    /// next update replaces it.
    ///
    /// # Errors
    /// Returns a [`ClassError`] if the classes are invalid or exceed the capacity.
    pub fn new(classes: &'static [Class], scope: S, delivery: P::Delivery) -> Result<Self, ClassError> {
        class::check(classes, FIELDS, (BYTES * 8).saturating_sub(OVERHEAD_BITS))?;
        Ok(Self::over(FixedAuthorityMemory::new(), classes, scope, delivery))
    }
}

#[cfg(feature = "alloc")]
impl<P: Protocol, S: Scope> HeapAuthority<P, S> {
    /// Creates an authority without entities, with the sizes of `config`. Its messages should be unreliable: a lost
    /// update is not resent, because a later one replaces it.
    ///
    /// ```
    /// use rakwire::raknet::{Delivery, RakNet};
    /// use rakwire_plugins::replication::{AuthorityConfig, Class, EverythingInScope, Field, HeapAuthority};
    ///
    /// static CLASSES: [Class; 1] = [Class { fields: &[Field::new(16).or_short(6), Field::new(10)] }];
    ///
    /// let config = AuthorityConfig { connections: 200, entities: 2_000, ..AuthorityConfig::default() };
    /// let delivery = Delivery::UNRELIABLE;
    /// let mut authority = HeapAuthority::<RakNet, _>::new(&CLASSES, EverythingInScope, delivery, &config)?;
    /// authority.spawn(0, 7, &[5_000, 512])?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Returns a [`ClassError`] if the classes are invalid or exceed the sizes of `config`.
    pub fn new(
        classes: &'static [Class],
        scope: S,
        delivery: P::Delivery,
        config: &AuthorityConfig,
    ) -> Result<Self, ClassError> {
        let room = config.max_message.saturating_mul(8).saturating_sub(OVERHEAD_BITS);
        class::check(classes, MAX_FIELDS, room)?;
        let memory = HeapAuthorityMemory::new(config, class::most_fields(classes));
        Ok(Self::over(memory, classes, scope, delivery))
    }
}

impl<P: Protocol, S: Scope, M: AuthorityMemory> Authority<P, S, M> {
    fn over(memory: M, classes: &'static [Class], scope: S, delivery: P::Delivery) -> Self {
        Self {
            scope,
            classes,
            fingerprint: class::fingerprint(classes),
            memory,
            tick: 0,
            delivery,
            mismatch: None,
            stats: AuthorityStats::default(),
        }
    }

    /// Creates an entity, which clients receive at the next [tick](Self::tick). `handle` is a number by which the
    /// application can find the entity.
    ///
    /// # Errors
    /// Returns a [`SpawnError`] if the class or its number of values is wrong, or the capacity is reached.
    pub fn spawn(&mut self, class: u8, handle: u32, values: &[u32]) -> Result<NetworkId, SpawnError> {
        let fields = self.classes.get(usize::from(class)).ok_or(SpawnError::BadClass)?.fields;
        if fields.len() != values.len() {
            return Err(SpawnError::BadClass);
        }
        let mut parts = self.memory.parts();
        let free = parts.entities.iter().position(Option::is_none).ok_or(SpawnError::TooMany)?;
        let index = u16::try_from(free).map_err(|_| SpawnError::TooMany)?;
        parts.fill(free, values.iter().zip(fields).map(|(value, field)| field.truncate(*value)));
        let Parts { entities, generations, .. } = parts;
        let (Some(entity), Some(generation)) = (entities.get_mut(free), generations.get_mut(free)) else {
            return Err(SpawnError::TooMany);
        };
        *generation = generation.wrapping_add(1);
        *entity = Some(Entity::new(*generation, class, handle));
        Ok(NetworkId { index, generation: *generation })
    }

    /// Removes an entity at the next tick. Returns false if it does not exist.
    pub fn despawn(&mut self, id: NetworkId) -> bool {
        let place = self.memory.parts().entities.get_mut(usize::from(id.index));
        place.and_then(|place| place.take_if(|entity| entity.generation == id.generation)).is_some()
    }

    /// Sets a field of an entity. Bits beyond the width of the field are discarded.
    ///
    /// # Errors
    /// Returns a [`SetError`] if the entity or field does not exist, or a client owns the entity.
    pub fn set(&mut self, id: NetworkId, field: usize, value: u32) -> Result<(), SetError> {
        let classes = self.classes;
        let mut parts = self.memory.parts();
        let entity = find(&mut parts, id).ok_or(SetError::Unknown)?;
        if entity.owner.is_some() {
            return Err(SetError::NotOwner);
        }
        let class = classes.get(usize::from(entity.class)).ok_or(SetError::Unknown)?;
        let width = class.fields.get(field).ok_or(SetError::NoField)?;
        let values = row_mut(parts.values, id.index.into(), parts.fields);
        *values.get_mut(field).ok_or(SetError::NoField)? = width.truncate(value);
        Ok(())
    }

    /// Sets the owner of an entity: the client that may set its fields. With `None` this authority is the owner. When a
    /// client disconnects, its entities return to the authority. Returns false if the entity or the client does not
    /// exist.
    pub fn set_owner(&mut self, id: NetworkId, owner: Option<ConnectionId>) -> bool {
        let mut parts = self.memory.parts();
        if owner.is_some_and(|owner| parts.peer(owner).is_none()) {
            return false;
        }
        find(&mut parts, id).map(|entity| entity.set_owner(owner)).is_some()
    }

    /// Returns an entity; `None` if it does not exist.
    #[must_use]
    pub fn get(&self, id: NetworkId) -> Option<EntityInfo<'_>> {
        let table = self.memory.view().table;
        let entity = table.get(id.index.into()).filter(|entity| entity.generation == id.generation)?;
        Some(table.info(id.index, entity))
    }

    /// Returns the entities, in the order of their indices.
    pub fn iter(&self) -> impl Iterator<Item = EntityInfo<'_>> + use<'_, P, S, M> {
        self.memory.view().table.iter()
    }

    /// Returns the first entity with this handle; `None` if there is none.
    #[must_use]
    pub fn find(&self, handle: u32) -> Option<EntityInfo<'_>> {
        self.iter().find(|entity| entity.handle == handle)
    }

    /// Sends each client the changes since the last tick. Returns the number of the tick, starting at 1. Run
    /// the driver afterwards.
    ///
    /// After 2^32 - 1 ticks, nothing more is sent.
    pub fn tick(&mut self) -> u32 {
        let Some(tick) = self.tick.checked_add(1) else { return self.tick };
        self.tick = tick;
        let mut parts = self.memory.parts();
        parts.on_tick(tick);
        for (_, peer) in parts.peers.iter_mut().flatten() {
            peer.is_due = peer.budget > 0 && peer.classes == ClientClasses::Same;
            // The classes are repeated, because a client in a driver without plugins may reply unreliably.
            peer.classes_due |= peer.classes == ClientClasses::Unknown && tick % GREETING_TICKS == 0;
        }
        tick
    }

    /// Sets the maximum number of bytes sent to a client per tick, in addition to the limit of one message.
    /// Returns false if there is no such client.
    ///
    /// An entity that exceeds the budget by itself never reaches the client. A client with a budget of 0 needs no
    /// computation.
    pub fn set_budget(&mut self, id: ConnectionId, bytes: usize) -> bool {
        self.memory.parts().peer(id).map(|peer| peer.budget = bytes).is_some()
    }

    /// Returns the counters of the data sent to a client.
    #[must_use]
    pub fn peer_stats(&self, id: ConnectionId) -> Option<PeerStats> {
        self.memory.view().peer(id).map(|peer| peer.stats)
    }

    /// Returns the counters.
    #[must_use]
    pub const fn stats(&self) -> AuthorityStats {
        self.stats
    }

    /// Returns the latest client with classes that differ from those of this authority. Each such client is returned
    /// once, and receives no entities.
    pub fn poll_mismatch(&mut self) -> Option<ConnectionId> {
        self.mismatch.take()
    }
}

/// Returns an entity, mutable.
fn find<'p>(parts: &'p mut Parts<'_>, id: NetworkId) -> Option<&'p mut Entity> {
    let entity = parts.entities.get_mut(usize::from(id.index))?.as_mut();
    entity.filter(|entity| entity.generation == id.generation)
}

impl<P: Protocol, S: Scope, M: AuthorityMemory> Plugin<P> for Authority<P, S, M> {
    fn message_ids(&self) -> MessageIds {
        MessageIds::of(&[REPLY_ID])
    }

    fn on_connected(&mut self, _: Instant, id: ConnectionId, _: SocketAddr, _: P::Identity, _: Side) {
        let parts = self.memory.parts();
        let (slot, entities) = (usize::from(id.slot()), parts.entities.len());
        match parts.peers.get_mut(slot) {
            Some(Some((owner, _))) if *owner == id => {}
            Some(place) => {
                *place = Some((id, Peer::new(parts.buffer.len())));
                row_mut(parts.known, slot, entities).fill(Known::NOTHING);
            }
            None => self.stats.over_capacity = self.stats.over_capacity.saturating_add(1),
        }
    }

    fn on_disconnected(&mut self, _now: Instant, id: ConnectionId, _reason: P::DisconnectReason) {
        let parts = self.memory.parts();
        if let Some(place) = parts.peers.get_mut(usize::from(id.slot())) {
            place.take_if(|(owner, _)| *owner == id);
        }
        let entities = parts.entities.iter_mut().flatten();
        entities.filter(|entity| entity.owner == Some(id)).for_each(|entity| entity.set_owner(None));
    }

    fn on_message(&mut self, _: Instant, id: ConnectionId, _: P::Delivery, message: &dyn Chunks) -> Verdict {
        let mut parts = self.memory.parts();
        let message = bytes::copy(message, core::mem::take(&mut parts.buffer));
        let mut replies = Replies {
            parts,
            classes: self.classes,
            fingerprint: self.fingerprint,
            tick: self.tick,
            mismatch: &mut self.mismatch,
            stats: &mut self.stats,
        };
        if message.and_then(|message| replies.on_reply(id, message)).is_none() {
            self.stats.malformed = self.stats.malformed.saturating_add(1);
        }
        Verdict::Drop
    }

    fn update(&mut self, _now: Instant, sender: &mut dyn MessageSender<P>) {
        let (classes, tick, delivery) = (self.classes, self.tick, self.delivery);
        let greeting = classes_of_authority(self.fingerprint);
        let parts = self.memory.parts();
        let entities = parts.entities.len();
        for (slot, place) in parts.peers.iter_mut().enumerate() {
            let Some((id, peer)) = place else { continue };
            if peer.classes_due {
                peer.classes_due = sender.send(*id, &greeting, P::Delivery::default()).is_err();
            }
            if !core::mem::take(&mut peer.is_due) {
                continue;
            }
            let table = Table {
                entities: parts.entities,
                values: parts.values,
                field_changed_at: parts.field_changed_at,
                past: parts.past,
                fields: parts.fields,
                history: parts.history,
            };
            let known = row_mut(parts.known, slot, entities);
            let (scope, due) = (&mut self.scope, &mut *parts.due);
            let mut cx = Tick { tick, classes, table, scope, due, is_chosen: &mut *parts.is_chosen };
            let Some((length, chosen)) = peer.write(known, &mut cx, *id, parts.buffer) else { continue };
            // If the connection does not accept the message, the message is dropped: the next tick sends newer state.
            if sender.send(*id, parts.buffer.get(..length).unwrap_or_default(), delivery).is_ok() {
                report(known, &mut cx, *id);
                peer.on_sent(known, &cx, &chosen, length);
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let view = self.memory.view();
        let mut peers = view.peers.iter().flatten();
        peers.any(|(_, peer)| peer.is_due || peer.classes_due).then_some(Instant::ZERO)
    }
}
