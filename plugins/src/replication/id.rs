//! The identifiers of entities.

/// The id of an entity, assigned by the authority and the same at all peers. The id recurs after 65,536 further
/// entities at the same index.
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
