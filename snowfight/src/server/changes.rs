//! What has changed in the world of late.

use heapless::Vec;

use crate::message::{Entity, EntityKind, Scope};
use crate::world::{Entities, MAX_ENTITIES, TICKS_PER_SECOND};

/// For how many ticks a change is told: a client that misses it has a dozen more chances.
const TOLD: u32 = TICKS_PER_SECOND / 2;
/// An entity as it was last, and when it became so.
#[derive(Clone, Copy, Debug)]
struct Seen {
    entity: Entity,
    changed: u32,
    /// The last tick in which it was there.
    present: u32,
}

/// Everything that there is or was a moment ago, by id.
#[derive(Debug)]
pub(super) struct Changes(Vec<Seen, MAX_ENTITIES>);

impl Changes {
    pub(super) const fn new() -> Self {
        Self(Vec::new())
    }

    /// Notes the world after a tick.
    pub(super) fn note(&mut self, now: u32, entities: &[Entity]) {
        for entity in entities {
            self.note_one(now, entity);
        }
        for seen in self.0.iter_mut().filter(|seen| seen.present != now) {
            if seen.entity.kind != EntityKind::Dead {
                seen.entity.kind = EntityKind::Dead;
                seen.changed = now;
            }
        }
        self.0.retain(|seen| seen.present == now || now.wrapping_sub(seen.changed) <= 2 * Scope::ROUND);
    }

    fn note_one(&mut self, now: u32, entity: &Entity) {
        let entity = *entity;
        match self.0.binary_search_by_key(&entity.id, |seen| seen.entity.id) {
            Ok(index) => {
                let Some(seen) = self.0.get_mut(index) else { return };
                seen.present = now;
                if seen.entity != entity {
                    *seen = Seen { entity, changed: now, present: now };
                }
            }
            Err(_) => {
                if self.0.is_full() {
                    self.0.retain(|seen| seen.present == now);
                }
                let index = self.0.partition_point(|seen| seen.entity.id < entity.id);
                // What is there now always has room.
                let _ = self.0.insert(index, Seen { entity, changed: now, present: now });
            }
        }
    }

    /// What a snapshot of changes tells in this tick.
    pub(super) fn at(&self, now: u32) -> Entities {
        let told = |seen: &&Seen| {
            now.wrapping_sub(seen.changed) < TOLD || seen.entity.id.0 % Scope::ROUND == now % Scope::ROUND
        };
        self.0.iter().filter(told).map(|seen| seen.entity).collect()
    }
}
