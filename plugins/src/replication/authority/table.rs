//! The entities of an authority, with the current and past values of their fields.

use super::entity::Entity;
use super::scope::EntityInfo;
use crate::replication::class::{Class, Field, MAX_FIELDS};
use crate::replication::id::NetworkId;
use crate::replication::rows::row;
use crate::replication::wire::Change;

/// The entities. Each has one row of fields in every list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Table<'m> {
    pub(super) entities: &'m [Option<Entity>],
    pub(super) values: &'m [u32],
    pub(super) field_changed_at: &'m [u32],
    /// The rows of past ticks, consecutive for each entity.
    pub(super) past: &'m [u32],
    /// The length of a row.
    pub(super) fields: usize,
    /// The number of rows of an entity in `past`.
    pub(super) history: usize,
}

impl<'m> Table<'m> {
    pub(super) fn get(&self, index: usize) -> Option<&'m Entity> {
        self.entities.get(index)?.as_ref()
    }

    /// Returns the current values of an entity.
    pub(super) fn values(&self, index: usize) -> &'m [u32] {
        row(self.values, index, self.fields)
    }

    /// Returns the values of an entity at a recent tick.
    pub(super) fn values_at(&self, index: usize, tick: u32) -> &'m [u32] {
        row(self.past, past_row(index, tick, self.history), self.fields)
    }

    pub(super) fn info(&self, index: u16, entity: &Entity) -> EntityInfo<'m> {
        let Entity { generation, class, handle, owner, .. } = *entity;
        let id = NetworkId { index, generation };
        EntityInfo { id, class, handle, owner, values: self.values(index.into()) }
    }

    pub(super) fn iter(self) -> impl Iterator<Item = EntityInfo<'m>> {
        let entities = (0..=u16::MAX).zip(self.entities);
        entities.filter_map(move |(index, entity)| Some(self.info(index, entity.as_ref()?)))
    }

    /// Returns the encoding of each field for a client that has the values of some tick since `acked`.
    pub(super) fn changes(&self, index: usize, class: &Class, acked: u32, tick: u32) -> [Change; MAX_FIELDS] {
        let mut changes = [Change::Unchanged; MAX_FIELDS];
        let fields = class.fields.iter().zip(row(self.field_changed_at, index, self.fields));
        for (number, ((field, changed_at), change)) in fields.zip(&mut changes).enumerate() {
            if *changed_at > acked {
                let is_short = self.is_short(index, *field, number, acked, tick);
                *change = if is_short { Change::Short } else { Change::Whole };
            }
        }
        changes
    }

    /// Returns true if the short form gives the current value from every value that the field has had since tick
    /// `acked`.
    fn is_short(&self, index: usize, field: Field, number: usize, acked: u32, tick: u32) -> bool {
        if field.short == 0 || (tick - acked) as usize >= self.history {
            return false;
        }
        let value_at = |tick| self.values_at(index, tick).get(number).copied().unwrap_or(0);
        let value = value_at(tick);
        (acked..tick).all(|before| field.is_short(value_at(before), value))
    }
}

/// Returns the number of the row with the fields of an entity at a tick.
pub(super) fn past_row(index: usize, tick: u32, history: usize) -> usize {
    index * history + tick as usize % history.max(1)
}
