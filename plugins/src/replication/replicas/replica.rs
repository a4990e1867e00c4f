//! One slot for an entity at a client.

use super::event::{RemoveReason, ReplicaEvent};
use crate::replication::wire::Full;

#[derive(Clone, Copy, Debug)]
pub(super) struct Replica {
    pub(super) name: Full,
    pub(super) handle: Option<u32>,
    /// True if the creation of the entity has been reported to the application.
    is_reported: bool,
    has_changed: bool,
    owner_has_changed: bool,
    /// True if this peer owns the entity and must still send its change.
    pub(super) is_unsent: bool,
}

/// A slot: its current entity and the previous one. The fields are in a separate row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) replica: Option<Replica>,
    /// The removal of a reported entity, if the removal has not been reported yet.
    removed: Option<(u16, RemoveReason)>,
    /// The latest tick that changed this slot.
    tick: u32,
    /// The tick in which the current entity was created, or the previous one was removed.
    filled_at: u32,
}

impl Place {
    pub(super) const EMPTY: Self = Self { replica: None, removed: None, tick: 0, filled_at: 0 };

    /// Returns the entity to which a delta of this tick belongs.
    pub(super) fn at(&self, tick: u32) -> Option<&Replica> {
        self.replica.as_ref().filter(|_| tick >= self.filled_at)
    }

    /// Advances to a tick; returns false if this tick or a later one has already been applied.
    fn advance(&mut self, tick: u32) -> bool {
        let is_latest = tick > self.tick;
        self.tick = self.tick.max(tick);
        is_latest
    }

    /// Handles a delta of a tick; returns true if the caller should apply the fields of the record.
    pub(super) fn on_delta(&mut self, tick: u32) -> bool {
        let replica = self.replica.as_mut().filter(|replica| tick > self.tick && !replica.name.is_owner);
        let counts = replica.map(|replica| replica.has_changed = true).is_some();
        self.advance(tick);
        counts
    }

    /// Handles a full entity at a tick; returns true if the caller should apply the fields of the record.
    pub(super) fn on_full(&mut self, tick: u32, name: Full) -> bool {
        if !self.advance(tick) {
            return false;
        }
        match &mut self.replica {
            Some(replica) if replica.name == name && name.is_owner => return false,
            Some(replica)
                if replica.name.generation == name.generation && replica.name.class == name.class =>
            {
                replica.owner_has_changed |= replica.name.is_owner != name.is_owner;
                (replica.name, replica.has_changed, replica.is_unsent) = (name, true, false);
            }
            Some(_) | None => {
                self.on_removed(tick, RemoveReason::Destroyed);
                self.replica = Some(Replica {
                    name,
                    handle: None,
                    is_reported: false,
                    has_changed: false,
                    owner_has_changed: name.is_owner,
                    is_unsent: false,
                });
            }
        }
        true
    }

    /// Handles a removal at a tick.
    pub(super) fn on_remove(&mut self, tick: u32, reason: RemoveReason) {
        if self.advance(tick) {
            self.on_removed(tick, reason);
        }
    }

    fn on_removed(&mut self, tick: u32, reason: RemoveReason) {
        self.filled_at = tick;
        if let Some(replica) = self.replica.take().filter(|replica| replica.is_reported) {
            self.removed = Some((replica.name.generation, reason));
        }
    }

    /// Handles the closing of the connection.
    pub(super) fn on_disconnected(&mut self) {
        self.on_removed(0, RemoveReason::Disconnected);
        self.tick = 0;
    }

    /// Returns the next event, and the generation of its entity.
    pub(super) fn poll_event(&mut self) -> Option<(u16, ReplicaEvent)> {
        if let Some((generation, reason)) = self.removed.take() {
            return Some((generation, ReplicaEvent::Removed(reason)));
        }
        let replica = self.replica.as_mut()?;
        let generation = replica.name.generation;
        if !replica.is_reported {
            (replica.is_reported, replica.has_changed) = (true, false);
            return Some((generation, ReplicaEvent::Created));
        }
        if core::mem::take(&mut replica.owner_has_changed) {
            return Some((generation, ReplicaEvent::OwnerChanged(replica.name.is_owner)));
        }
        core::mem::take(&mut replica.has_changed).then_some((generation, ReplicaEvent::Changed))
    }
}
