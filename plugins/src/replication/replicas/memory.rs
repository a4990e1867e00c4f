//! The memory of replicas: inline with sizes in its type, or on the heap with sizes chosen at run time.

#[cfg(feature = "alloc")]
use alloc::{boxed::Box, vec};

use super::replica::Place;

/// The memory of replicas: [`FixedReplicasMemory`], or `HeapReplicasMemory` with the feature `alloc`.
#[expect(private_bounds, reason = "only the plugin accesses the lists of its memory")]
pub trait ReplicasMemory: Lists {}

/// The lists of replicas in their memory.
pub(super) trait Lists {
    /// Borrows the lists mutably.
    fn parts(&mut self) -> Parts<'_>;
    /// Borrows the lists.
    fn view(&self) -> View<'_>;
}

/// The lists of replicas.
#[derive(Debug)]
pub(super) struct Parts<'m> {
    pub(super) places: &'m mut [Place],
    /// A row of fields for each slot.
    pub(super) values: &'m mut [u32],
    pub(super) buffer: &'m mut [u8],
    pub(super) fields: usize,
}

/// The lists of replicas, read-only.
#[derive(Clone, Copy, Debug)]
pub(super) struct View<'m> {
    pub(super) places: &'m [Place],
    pub(super) values: &'m [u32],
    pub(super) fields: usize,
}

/// Inline memory, which needs no allocator. It has capacity for `ENTITIES` entities of up to `FIELDS` fields, and for
/// messages of up to `BYTES` bytes.
#[derive(Debug)]
pub struct FixedReplicasMemory<const ENTITIES: usize, const FIELDS: usize, const BYTES: usize> {
    places: [Place; ENTITIES],
    values: [[u32; FIELDS]; ENTITIES],
    buffer: [u8; BYTES],
}

impl<const ENTITIES: usize, const FIELDS: usize, const BYTES: usize>
    FixedReplicasMemory<ENTITIES, FIELDS, BYTES>
{
    pub(super) const fn new() -> Self {
        const { assert!(ENTITIES > 0 && ENTITIES <= 1 << 16) };
        Self { places: [Place::EMPTY; ENTITIES], values: [[0; FIELDS]; ENTITIES], buffer: [0; BYTES] }
    }
}

impl<const ENTITIES: usize, const FIELDS: usize, const BYTES: usize> ReplicasMemory
    for FixedReplicasMemory<ENTITIES, FIELDS, BYTES>
{
}

impl<const ENTITIES: usize, const FIELDS: usize, const BYTES: usize> Lists
    for FixedReplicasMemory<ENTITIES, FIELDS, BYTES>
{
    fn parts(&mut self) -> Parts<'_> {
        let Self { places, values, buffer } = self;
        Parts { places, values: values.as_flattened_mut(), buffer, fields: FIELDS }
    }

    fn view(&self) -> View<'_> {
        View { places: &self.places, values: self.values.as_flattened(), fields: FIELDS }
    }
}

/// The sizes of replicas on the heap, which must equal those of the authority. The number of fields is that of the
/// largest class.
///
/// ```
/// use rakwire_plugins::replication::ReplicasConfig;
///
/// let config = ReplicasConfig { entities: 4_000, ..ReplicasConfig::default() };
/// assert_eq!(config.max_message, 1_024);
/// ```
#[cfg(feature = "alloc")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicasConfig {
    /// The maximum number of entities, 1 to 65,536; must equal that of the authority. Default: 1,024.
    pub entities: usize,
    /// The maximum length of a message in bytes; must equal that of the authority. Default: 1,024.
    pub max_message: usize,
}

#[cfg(feature = "alloc")]
impl Default for ReplicasConfig {
    fn default() -> Self {
        Self { entities: 1_024, max_message: 1_024 }
    }
}

/// Memory on the heap, with the sizes of a [`ReplicasConfig`].
#[cfg(feature = "alloc")]
#[derive(Debug)]
pub struct HeapReplicasMemory {
    places: Box<[Place]>,
    values: Box<[u32]>,
    buffer: Box<[u8]>,
    fields: usize,
}

#[cfg(feature = "alloc")]
impl HeapReplicasMemory {
    /// Allocates each list directly on the heap, so that no list ever occupies the stack.
    pub(super) fn new(config: &ReplicasConfig, fields: usize) -> Self {
        let entities = config.entities.clamp(1, 1 << 16);
        Self {
            places: vec![Place::EMPTY; entities].into(),
            values: vec![0; entities.saturating_mul(fields)].into(),
            buffer: vec![0; config.max_message].into(),
            fields,
        }
    }
}

#[cfg(feature = "alloc")]
impl ReplicasMemory for HeapReplicasMemory {}

#[cfg(feature = "alloc")]
impl Lists for HeapReplicasMemory {
    fn parts(&mut self) -> Parts<'_> {
        let Self { places, values, buffer, fields } = self;
        Parts { places, values, buffer, fields: *fields }
    }

    fn view(&self) -> View<'_> {
        View { places: &self.places, values: &self.values, fields: self.fields }
    }
}
