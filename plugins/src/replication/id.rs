//! The identifiers of entities.

/// The id of an entity, which is the same at all peers. The authority assigns it. An id is reused after its
/// index was used 65,536 times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NetworkId {
    pub(super) index: u16,
    pub(super) generation: u16,
}

impl NetworkId {
    /// Returns the index of the entity, which is below the authority's maximum number of entities. Later
    /// entities may reuse it.
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
