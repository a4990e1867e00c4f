//! The memory of an authority: inline, with sizes in its type, or on the heap, with sizes chosen at run time.

#[cfg(feature = "alloc")]
use alloc::{boxed::Box, vec};

use rakwire::endpoint::ConnectionId;

use super::entity::Entity;
use super::known::Known;
use super::peer::Peer;
use super::table::{Table, past_row};
use crate::replication::rows::{row, row_mut};

/// The memory of an authority: [`FixedAuthorityMemory`], or `HeapAuthorityMemory` with the feature `alloc`.
#[expect(private_bounds, reason = "only the plugin accesses the lists of its memory")]
pub trait AuthorityMemory: Lists {}

/// The lists that an authority works on.
pub(super) trait Lists {
    /// Borrows the lists mutably.
    fn parts(&mut self) -> Parts<'_>;
    /// Borrows the lists.
    fn view(&self) -> View<'_>;
}

/// The lists of an authority.
#[derive(Debug)]
pub(super) struct Parts<'m> {
    pub(super) entities: &'m mut [Option<Entity>],
    pub(super) generations: &'m mut [u16],
    pub(super) values: &'m mut [u32],
    pub(super) field_changed_at: &'m mut [u32],
    pub(super) past: &'m mut [u32],
    pub(super) peers: &'m mut [Option<(ConnectionId, Peer)>],
    /// For each peer, one row with all entities.
    pub(super) known: &'m mut [Known],
    pub(super) due: &'m mut [(u32, u16)],
    pub(super) is_chosen: &'m mut [bool],
    pub(super) buffer: &'m mut [u8],
    pub(super) fields: usize,
    pub(super) history: usize,
}

/// The lists of an authority, read-only.
#[derive(Debug)]
pub(super) struct View<'m> {
    pub(super) table: Table<'m>,
    pub(super) peers: &'m [Option<(ConnectionId, Peer)>],
}

impl Parts<'_> {
    /// Stores the current values as those of a new tick.
    pub(super) fn on_tick(&mut self, tick: u32) {
        let (fields, history) = (self.fields, self.history);
        for (index, entity) in self.entities.iter_mut().enumerate() {
            let Some(entity) = entity else { continue };
            let is_new = entity.created_at == 0;
            let values = row(self.values, index, fields);
            let before = row(self.past, past_row(index, tick.wrapping_sub(1), history), fields);
            let changed_at = row_mut(self.field_changed_at, index, fields);
            for ((changed_at, value), before) in changed_at.iter_mut().zip(values).zip(before) {
                if is_new || value != before {
                    (*changed_at, entity.changed_at) = (tick, tick);
                }
            }
            if is_new {
                entity.created_at = tick;
            }
            let now = row_mut(self.past, past_row(index, tick, history), fields);
            now.iter_mut().zip(values).for_each(|(place, value)| *place = *value);
        }
    }

    /// Fills the rows of a new entity.
    pub(super) fn fill(&mut self, index: usize, values: impl Iterator<Item = u32>) {
        let row = row_mut(self.values, index, self.fields);
        row.fill(0);
        row.iter_mut().zip(values).for_each(|(place, value)| *place = value);
        row_mut(self.field_changed_at, index, self.fields).fill(0);
        row_mut(self.past, index, self.history * self.fields).fill(0);
    }

    pub(super) fn peer(&mut self, id: ConnectionId) -> Option<&mut Peer> {
        let (owner, peer) = self.peers.get_mut(usize::from(id.slot()))?.as_mut()?;
        (*owner == id).then_some(peer)
    }
}

impl View<'_> {
    pub(super) fn peer(&self, id: ConnectionId) -> Option<&Peer> {
        let (owner, peer) = self.peers.get(usize::from(id.slot()))?.as_ref()?;
        (*owner == id).then_some(peer)
    }
}

/// Inline memory, which needs no allocator.
///
/// It has capacity for `PEERS` connections and `ENTITIES` entities of up to `FIELDS` fields. Short forms are
/// used if the last acknowledgement is less than `HISTORY` ticks old. Messages have up to `BYTES` bytes.
#[derive(Debug)]
pub struct FixedAuthorityMemory<
    const PEERS: usize,
    const ENTITIES: usize,
    const FIELDS: usize,
    const HISTORY: usize,
    const BYTES: usize,
> {
    entities: [Option<Entity>; ENTITIES],
    generations: [u16; ENTITIES],
    values: [[u32; FIELDS]; ENTITIES],
    field_changed_at: [[u32; FIELDS]; ENTITIES],
    past: [[[u32; FIELDS]; HISTORY]; ENTITIES],
    peers: [Option<(ConnectionId, Peer)>; PEERS],
    known: [[Known; ENTITIES]; PEERS],
    due: [(u32, u16); ENTITIES],
    is_chosen: [bool; ENTITIES],
    buffer: [u8; BYTES],
}

impl<const PEERS: usize, const ENTITIES: usize, const FIELDS: usize, const HISTORY: usize, const BYTES: usize>
    FixedAuthorityMemory<PEERS, ENTITIES, FIELDS, HISTORY, BYTES>
{
    pub(super) const fn new() -> Self {
        const { assert!(ENTITIES > 0 && ENTITIES <= 1 << 16 && HISTORY > 1) };
        Self {
            entities: [None; ENTITIES],
            generations: [0; ENTITIES],
            values: [[0; FIELDS]; ENTITIES],
            field_changed_at: [[0; FIELDS]; ENTITIES],
            past: [[[0; FIELDS]; HISTORY]; ENTITIES],
            peers: [const { None }; PEERS],
            known: [[Known::NOTHING; ENTITIES]; PEERS],
            due: [(0, 0); ENTITIES],
            is_chosen: [false; ENTITIES],
            buffer: [0; BYTES],
        }
    }
}

impl<const PEERS: usize, const ENTITIES: usize, const FIELDS: usize, const HISTORY: usize, const BYTES: usize>
    AuthorityMemory for FixedAuthorityMemory<PEERS, ENTITIES, FIELDS, HISTORY, BYTES>
{
}

impl<const PEERS: usize, const ENTITIES: usize, const FIELDS: usize, const HISTORY: usize, const BYTES: usize>
    Lists for FixedAuthorityMemory<PEERS, ENTITIES, FIELDS, HISTORY, BYTES>
{
    fn parts(&mut self) -> Parts<'_> {
        Parts {
            entities: &mut self.entities,
            generations: &mut self.generations,
            values: self.values.as_flattened_mut(),
            field_changed_at: self.field_changed_at.as_flattened_mut(),
            past: self.past.as_flattened_mut().as_flattened_mut(),
            peers: &mut self.peers,
            known: self.known.as_flattened_mut(),
            due: &mut self.due,
            is_chosen: &mut self.is_chosen,
            buffer: &mut self.buffer,
            fields: FIELDS,
            history: HISTORY,
        }
    }

    fn view(&self) -> View<'_> {
        let table = Table {
            entities: &self.entities,
            values: self.values.as_flattened(),
            field_changed_at: self.field_changed_at.as_flattened(),
            past: self.past.as_flattened().as_flattened(),
            fields: FIELDS,
            history: HISTORY,
        };
        View { table, peers: &self.peers }
    }
}

/// The sizes of an authority on the heap. The number of fields is that of the largest class.
/// ```
/// use rakwire_plugins::replication::AuthorityConfig;
///
/// let config = AuthorityConfig { connections: 200, entities: 4_000, ..AuthorityConfig::default() };
/// assert_eq!((config.history, config.max_message), (16, 1_024));
/// ```
#[cfg(feature = "alloc")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuthorityConfig {
    /// The maximum number of connections, which should equal the capacity of the peer. Each takes 32 bytes
    /// per entity. Default: 64.
    pub connections: usize,
    /// The maximum number of entities, 1 to 65,536. Clients need the same capacity. Default: 1,024.
    pub entities: usize,
    /// The number of past ticks that are stored, at least 2. A change has its short form if the last acknowledgement
    /// is more recent than that. Each tick takes four bytes per field of each entity. Default: 16.
    pub history: usize,
    /// The maximum message length in bytes. Clients need the same maximum. Default: 1,024, which fits into a
    /// datagram.
    pub max_message: usize,
}

#[cfg(feature = "alloc")]
impl Default for AuthorityConfig {
    fn default() -> Self {
        Self { connections: 64, entities: 1_024, history: 16, max_message: 1_024 }
    }
}

/// Memory on the heap, with the sizes of an [`AuthorityConfig`].
#[cfg(feature = "alloc")]
#[derive(Debug)]
pub struct HeapAuthorityMemory {
    entities: Box<[Option<Entity>]>,
    generations: Box<[u16]>,
    values: Box<[u32]>,
    field_changed_at: Box<[u32]>,
    past: Box<[u32]>,
    peers: Box<[Option<(ConnectionId, Peer)>]>,
    known: Box<[Known]>,
    due: Box<[(u32, u16)]>,
    is_chosen: Box<[bool]>,
    buffer: Box<[u8]>,
    fields: usize,
    history: usize,
}

#[cfg(feature = "alloc")]
impl HeapAuthorityMemory {
    /// Allocates each list directly on the heap, so that no list ever occupies the stack.
    pub(super) fn new(config: &AuthorityConfig, fields: usize) -> Self {
        let entities = config.entities.clamp(1, 1 << 16);
        let history = config.history.max(2);
        let of_fields = entities.saturating_mul(fields);
        Self {
            entities: vec![None; entities].into(),
            generations: vec![0; entities].into(),
            values: vec![0; of_fields].into(),
            field_changed_at: vec![0; of_fields].into(),
            past: vec![0; of_fields.saturating_mul(history)].into(),
            peers: (0..config.connections).map(|_| None).collect(),
            known: vec![Known::NOTHING; entities.saturating_mul(config.connections)].into(),
            due: vec![(0, 0); entities].into(),
            is_chosen: vec![false; entities].into(),
            buffer: vec![0; config.max_message].into(),
            fields,
            history,
        }
    }
}

#[cfg(feature = "alloc")]
impl AuthorityMemory for HeapAuthorityMemory {}

#[cfg(feature = "alloc")]
impl Lists for HeapAuthorityMemory {
    fn parts(&mut self) -> Parts<'_> {
        Parts {
            entities: &mut self.entities,
            generations: &mut self.generations,
            values: &mut self.values,
            field_changed_at: &mut self.field_changed_at,
            past: &mut self.past,
            peers: &mut self.peers,
            known: &mut self.known,
            due: &mut self.due,
            is_chosen: &mut self.is_chosen,
            buffer: &mut self.buffer,
            fields: self.fields,
            history: self.history,
        }
    }

    fn view(&self) -> View<'_> {
        let table = Table {
            entities: &self.entities,
            values: &self.values,
            field_changed_at: &self.field_changed_at,
            past: &self.past,
            fields: self.fields,
            history: self.history,
        };
        View { table, peers: &self.peers }
    }
}
