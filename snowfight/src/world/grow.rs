//! Objects that grow where others have ended, so that a long game never runs out of them.

use super::World;
use super::body::Thing;
use super::generate;
use super::terrain::Tile;
use crate::message::{EntityId, ObjectKind};

impl World {
    /// As many objects grow as have ended, each with a new id and of the kind that there is less of.
    pub(super) fn grow(&mut self) {
        for _ in 0..core::mem::take(&mut self.ended) {
            if self.grow_one().is_none() {
                break;
            }
        }
    }

    fn grow_one(&mut self) -> Option<()> {
        let next = self.next_entity.checked_add(1)?;
        let Self { walkers, things, random, .. } = self;
        let position = generate::place(random, |tile| {
            let bodies = walkers.iter().map(|walker| walker.position);
            bodies.chain(things.iter().map(|thing| thing.position)).any(|place| Tile::below(place) == tile)
        })?;
        let trees = things.iter().filter(|thing| thing.kind == ObjectKind::Tree).count();
        let kind = if 2 * trees < things.len() { ObjectKind::Tree } else { ObjectKind::Mushroom };
        things.push(Thing::new(EntityId(self.next_entity), kind, position)).ok()?;
        self.next_entity = next;
        Some(())
    }
}
