//! One entity at the authority.

use rakwire::endpoint::ConnectionId;

/// The state of an entity without its fields.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entity {
    pub(super) generation: u16,
    pub(super) class: u8,
    pub(super) handle: u32,
    pub(super) owner: Option<ConnectionId>,
    /// The number of ownership changes so far.
    pub(super) term: u16,
    /// The number of the last applied state message from the owner.
    pub(super) owner_number: u32,
    /// The tick in which the entity was first sent; 0 before that.
    pub(super) created_at: u32,
    /// The last tick in which any field changed.
    pub(super) changed_at: u32,
}

impl Entity {
    pub(super) const fn new(generation: u16, class: u8, handle: u32) -> Self {
        Self {
            generation,
            class,
            handle,
            owner: None,
            term: 0,
            owner_number: 0,
            created_at: 0,
            changed_at: 0,
        }
    }

    /// Changes the owner.
    pub(super) fn set_owner(&mut self, owner: Option<ConnectionId>) {
        if self.owner != owner {
            (self.owner, self.owner_number) = (owner, 0);
            self.term = self.term.wrapping_add(1);
        }
    }
}
