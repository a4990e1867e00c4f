//! Regrowth of objects, so that a long game never runs out of them.

use super::World;
use super::body::ObjectBody;
use super::generate;
use super::terrain::Tile;
use crate::message::{EntityId, ObjectKind};

impl World {
    /// Adds as many objects as were removed. Each new object has a new id, and is a tree if trees are fewer than half
    /// of the objects, otherwise a mushroom.
    pub(super) fn grow(&mut self) {
        for _ in 0..core::mem::take(&mut self.ended) {
            if self.grow_one().is_none() {
                break;
            }
        }
    }

    fn grow_one(&mut self) -> Option<()> {
        let next = self.next_entity.checked_add(1)?;
        let Self { players, objects, random, .. } = self;
        let position = generate::free_position(random, |tile| {
            let bodies = players.iter().map(|body| body.position);
            bodies.chain(objects.iter().map(|object| object.position)).any(|place| Tile::below(place) == tile)
        })?;
        let trees = objects.iter().filter(|object| object.kind == ObjectKind::Tree).count();
        let kind = if 2 * trees < objects.len() { ObjectKind::Tree } else { ObjectKind::Mushroom };
        objects.push(ObjectBody::new(EntityId(self.next_entity), kind, position)).ok()?;
        self.next_entity = next;
        Some(())
    }
}
