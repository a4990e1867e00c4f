//! One entity, as the authority has it.

use rakwire::endpoint::ConnectionId;

use crate::replication::class::{Class, Field};
use crate::replication::wire::Change;

#[derive(Clone, Debug)]
pub(super) struct Entity<const FIELDS: usize, const HISTORY: usize> {
    pub(super) generation: u16,
    pub(super) class: u8,
    pub(super) handle: u32,
    pub(super) owner: Option<ConnectionId>,
    /// Counts how often it has had another owner.
    pub(super) term: u16,
    /// The number of the last message of its owner that was heeded.
    pub(super) owner_number: u32,
    pub(super) values: [u32; FIELDS],
    /// The tick in which it was first seen; 0 before that.
    pub(super) created_at: u32,
    /// The last tick in which anything has changed.
    pub(super) changed_at: u32,
    field_changed_at: [u32; FIELDS],
    /// The values at the last ticks.
    history: [[u32; FIELDS]; HISTORY],
}

impl<const FIELDS: usize, const HISTORY: usize> Entity<FIELDS, HISTORY> {
    pub(super) const fn new(generation: u16, class: u8, handle: u32, values: [u32; FIELDS]) -> Self {
        Self {
            generation,
            class,
            handle,
            owner: None,
            term: 0,
            owner_number: 0,
            values,
            created_at: 0,
            changed_at: 0,
            field_changed_at: [0; FIELDS],
            history: [[0; FIELDS]; HISTORY],
        }
    }

    /// Gives it to another owner.
    pub(super) fn set_owner(&mut self, owner: Option<ConnectionId>) {
        if self.owner != owner {
            (self.owner, self.owner_number) = (owner, 0);
            self.term = self.term.wrapping_add(1);
        }
    }

    /// The values at one of the last ticks.
    pub(super) fn values_at(&self, tick: u32) -> &[u32; FIELDS] {
        self.history.get(tick as usize % HISTORY.max(1)).unwrap_or(&self.values)
    }

    /// The values of a tick that has just begun.
    pub(super) fn on_tick(&mut self, tick: u32) {
        let is_new = self.created_at == 0;
        let before = *self.values_at(tick.wrapping_sub(1));
        for ((changed_at, value), before) in self.field_changed_at.iter_mut().zip(self.values).zip(before) {
            if is_new || value != before {
                (*changed_at, self.changed_at) = (tick, tick);
            }
        }
        if is_new {
            self.created_at = tick;
        }
        if let Some(place) = self.history.get_mut(tick as usize % HISTORY.max(1)) {
            *place = self.values;
        }
    }

    /// How to tell a client what has changed that has the values of some tick from `acked` on.
    pub(super) fn changes(&self, class: &Class, acked: u32, tick: u32) -> [Change; FIELDS] {
        let mut changes = [Change::Unchanged; FIELDS];
        let fields = class.fields.iter().zip(self.field_changed_at);
        for (number, ((field, changed_at), change)) in fields.zip(&mut changes).enumerate() {
            if changed_at > acked {
                let is_short = self.is_short(*field, number, acked, tick);
                *change = if is_short { Change::Short } else { Change::Whole };
            }
        }
        changes
    }

    /// Whether the short form leads to the value of a field from every value that it has had since a tick.
    fn is_short(&self, field: Field, number: usize, acked: u32, tick: u32) -> bool {
        if field.short == 0 || (tick - acked) as usize >= HISTORY {
            return false;
        }
        let value_at = |tick| self.values_at(tick).get(number).copied().unwrap_or(0);
        let value = value_at(tick);
        (acked..tick).all(|before| field.is_short(value_at(before), value))
    }
}
