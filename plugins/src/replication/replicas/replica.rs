//! One place for an entity, as a client has it.

use super::event::{RemoveReason, ReplicaEvent};
use crate::replication::wire::Full;

#[derive(Clone, Copy, Debug)]
pub(super) struct Replica {
    pub(super) name: Full,
    pub(super) handle: Option<u32>,
    /// The application knows of it.
    is_told: bool,
    has_changed: bool,
    owner_has_changed: bool,
    /// This peer owns it, has changed it, and has not told the authority.
    pub(super) is_unsent: bool,
}

/// A place: the entity that is there, and what was there before. Its fields are in a row of their own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) replica: Option<Replica>,
    /// An entity that the application knows of, and that is not here any more.
    removed: Option<(u16, RemoveReason)>,
    /// The last tick that has said anything of this place.
    tick: u32,
    /// The tick that the entity here came with, or the last one went with.
    filled_at: u32,
}

impl Place {
    pub(super) const EMPTY: Self = Self { replica: None, removed: None, tick: 0, filled_at: 0 };

    /// The entity to which a delta of a tick belongs.
    pub(super) fn at(&self, tick: u32) -> Option<&Replica> {
        self.replica.as_ref().filter(|_| tick >= self.filled_at)
    }

    /// Whether a tick is the latest to say anything of this place.
    fn advance(&mut self, tick: u32) -> bool {
        let is_latest = tick > self.tick;
        self.tick = self.tick.max(tick);
        is_latest
    }

    /// Changes of a tick; true if the fields become those of the record.
    pub(super) fn on_delta(&mut self, tick: u32) -> bool {
        let replica = self.replica.as_mut().filter(|replica| tick > self.tick && !replica.name.is_owner);
        let counts = replica.map(|replica| replica.has_changed = true).is_some();
        self.advance(tick);
        counts
    }

    /// All of an entity at a tick; true if the fields become those of the record.
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
                    is_told: false,
                    has_changed: false,
                    owner_has_changed: name.is_owner,
                    is_unsent: false,
                });
            }
        }
        true
    }

    /// A record of a tick has removed the entity.
    pub(super) fn on_remove(&mut self, tick: u32, reason: RemoveReason) {
        if self.advance(tick) {
            self.on_removed(tick, reason);
        }
    }

    fn on_removed(&mut self, tick: u32, reason: RemoveReason) {
        self.filled_at = tick;
        if let Some(replica) = self.replica.take().filter(|replica| replica.is_told) {
            self.removed = Some((replica.name.generation, reason));
        }
    }

    /// The connection has ended.
    pub(super) fn on_disconnected(&mut self) {
        self.on_removed(0, RemoveReason::Disconnected);
        self.tick = 0;
    }

    /// What the application is to be told, with the generation of which it is true.
    pub(super) fn poll_event(&mut self) -> Option<(u16, ReplicaEvent)> {
        if let Some((generation, reason)) = self.removed.take() {
            return Some((generation, ReplicaEvent::Removed(reason)));
        }
        let replica = self.replica.as_mut()?;
        let generation = replica.name.generation;
        if !replica.is_told {
            (replica.is_told, replica.has_changed) = (true, false);
            return Some((generation, ReplicaEvent::Created));
        }
        if core::mem::take(&mut replica.owner_has_changed) {
            return Some((generation, ReplicaEvent::OwnerChanged(replica.name.is_owner)));
        }
        core::mem::take(&mut replica.has_changed).then_some((generation, ReplicaEvent::Changed))
    }
}
