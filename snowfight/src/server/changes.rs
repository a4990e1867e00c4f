//! Recent changes in the world.

use heapless::Vec;

use crate::message::{Entity, EntityKind, Scope};
use crate::world::{Entities, MAX_ENTITIES, TICKS_PER_SECOND};

/// For how many ticks a change is reported, so that a client that misses some snapshots still gets it.
const REPORT_TICKS: u32 = TICKS_PER_SECOND / 2;
/// The last state of an entity, and the tick of its last change.
#[derive(Clone, Copy, Debug)]
struct Tracked {
    entity: Entity,
    changed: u32,
    /// The last tick in which it existed.
    present: u32,
}

/// All entities that exist or have ended recently, sorted by id.
#[derive(Debug)]
pub(super) struct Changes(Vec<Tracked, MAX_ENTITIES>);

impl Changes {
    pub(super) const fn new() -> Self {
        Self(Vec::new())
    }

    /// Records the world after a tick.
    pub(super) fn record(&mut self, now: u32, entities: &[Entity]) {
        for entity in entities {
            self.record_one(now, entity);
        }
        for tracked in self.0.iter_mut().filter(|tracked| tracked.present != now) {
            if tracked.entity.kind != EntityKind::Dead {
                tracked.entity.kind = EntityKind::Dead;
                tracked.changed = now;
            }
        }
        self.0.retain(|tracked| {
            tracked.present == now || now.wrapping_sub(tracked.changed) <= 2 * Scope::REFRESH_TICKS
        });
    }

    fn record_one(&mut self, now: u32, entity: &Entity) {
        let entity = *entity;
        match self.0.binary_search_by_key(&entity.id, |tracked| tracked.entity.id) {
            Ok(index) => {
                let Some(tracked) = self.0.get_mut(index) else { return };
                tracked.present = now;
                if tracked.entity != entity {
                    *tracked = Tracked { entity, changed: now, present: now };
                }
            }
            Err(_) => {
                if self.0.is_full() {
                    self.0.retain(|tracked| tracked.present == now);
                }
                let index = self.0.partition_point(|tracked| tracked.entity.id < entity.id);
                // There is always room for the current entities.
                let _ = self.0.insert(index, Tracked { entity, changed: now, present: now });
            }
        }
    }

    /// The entities in the snapshot of changes of this tick.
    pub(super) fn for_tick(&self, now: u32) -> Entities {
        let is_reported = |tracked: &&Tracked| {
            now.wrapping_sub(tracked.changed) < REPORT_TICKS
                || tracked.entity.id.0 % Scope::REFRESH_TICKS == now % Scope::REFRESH_TICKS
        };
        self.0.iter().filter(is_reported).map(|tracked| tracked.entity).collect()
    }
}
