//! The names of entities.

/// Names an entity at all peers. The authority makes it; a name comes again when its index was used 65,536 times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NetworkId {
    pub(super) index: u16,
    pub(super) generation: u16,
}

impl NetworkId {
    /// The place of the entity, below the number of entities that the authority has room for. Entities that follow each other
    /// may have the same one.
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
