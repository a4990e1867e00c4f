//! The identifiers of entities.

/// The identifier of an entity at all peers. The authority assigns it; it is reused after its index was used 65,536
/// times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NetworkId {
    pub(super) index: u16,
    pub(super) generation: u16,
}

impl NetworkId {
    /// Returns the index of the entity, below the number of entities that the authority has room for. Entities may
    /// reuse the index of a removed one.
    #[must_use]
    pub const fn index(self) -> u16 {
        self.index
    }
}

impl core::fmt::Display for NetworkId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}.{}", self.index, self.generation)
    }
}
