//! A world made of what a server tells, for a client that wants to know what will become of its own player.

use super::World;
use super::body::{Place, Thing, Walker};
use super::rules::{STEP, TICK};
use crate::message::{Direction, Entity, EntityKind, PlayerId, Point};

impl World {
    /// Takes everything that stands in the way from a snapshot, instead of what was there. Objects that nobody can
    /// break are in somebody's hands or in the air, and in nobody's way.
    pub fn observe(&mut self, entities: impl IntoIterator<Item = Entity>) {
        self.walkers.clear();
        self.things.clear();
        for Entity { id, kind } in entities {
            match kind {
                EntityKind::Player(player) => {
                    let mut walker = Walker::new(id, player.owner, player.position);
                    walker.movement = player.movement;
                    // Of more than the rules allow the rest is not seen.
                    let _ = self.walkers.push(walker);
                }
                EntityKind::Object(object) if object.durability.is_some() => {
                    let mut thing = Thing::new(id, object.kind, object.position);
                    thing.place = Place::Standing;
                    let _ = self.things.push(thing);
                }
                EntityKind::Object(_) | EntityKind::Dead => {}
            }
        }
    }

    /// One player walks from somewhere for a tick, and everything else stands still. Returns where that ends; nowhere
    /// when there is no such player.
    pub fn walk_alone(&mut self, player: PlayerId, from: Point, movement: Direction) -> Option<Point> {
        let index = self.walkers.iter().position(|walker| walker.owner == player)?;
        let mut walker = *self.walkers.get(index)?;
        (walker.position, walker.movement) = (from, movement);
        let mut left = TICK;
        while left > 0.0 {
            walker.position = self.path(&walker, walker.velocity() * left.min(STEP));
            self.free(&mut walker);
            left -= STEP;
        }
        *self.walkers.get_mut(index)? = walker;
        Some(walker.position)
    }
}
