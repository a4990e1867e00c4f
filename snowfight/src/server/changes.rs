//! Tracks which entities changed recently, for delta snapshots.

use heapless::Vec;

use crate::message::{Entity, EntityId, EntityKind, Scope};
use crate::world::{Entities, MAX_ENTITIES, TICKS_PER_SECOND};

/// The number of ticks for which a change is repeated, so that a client that misses some snapshots still receives it.
const REPORT_TICKS: u32 = TICKS_PER_SECOND / 2;
/// The interval between delta snapshots, in ticks.
pub(super) const SNAPSHOT_TICKS: u32 = 2;

/// The last state of an entity, and the tick of its last change.
#[derive(Clone, Copy, Debug)]
struct Tracked {
    entity: Entity,
    changed: u32,
    /// The last tick in which the entity existed.
    present: u32,
}

/// All entities that exist or were removed recently, sorted by id.
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
                // This cannot fail: removed entities were dropped to make space.
                let _ = self.0.insert(index, Tracked { entity, changed: now, present: now });
            }
        }
    }

    /// Returns the entities in this tick's snapshot of changes for a client with these gaps.
    pub(super) fn for_tick(&self, now: u32, gaps: Gaps) -> Entities {
        let is_reported = |tracked: &&Tracked| {
            now.wrapping_sub(tracked.changed) < gaps.changes || gaps.is_refreshed(now, tracked.entity.id)
        };
        self.0.iter().filter(is_reported).map(|tracked| tracked.entity).collect()
    }
}

/// The ticks that a snapshot of changes must cover. All clients that receive every snapshot of their scope have the
/// same gaps and share its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gaps {
    /// The number of past ticks from which changes are included.
    changes: u32,
    /// The ticks since the last snapshot for the client. Unchanged entities that were due in that time are included.
    snapshots: u32,
}

impl Gaps {
    /// Returns the gaps for a client, from the ages in ticks of the last snapshot that it applied and of the last one
    /// sent to it.
    pub(super) fn new(applied: u32, sent: u32) -> Self {
        let changes = applied.max(sent).saturating_add(1).min(u32::MAX / 2);
        let snapshots = sent.clamp(SNAPSHOT_TICKS, 2 * Scope::REFRESH_TICKS);
        // The gaps are rounded up, so that more clients share a snapshot.
        Self {
            changes: changes.div_ceil(REPORT_TICKS) * REPORT_TICKS,
            snapshots: snapshots.next_power_of_two().min(2 * Scope::REFRESH_TICKS),
        }
    }

    /// Returns true if an unchanged entity is due in this tick's snapshot, or was due in a skipped one.
    const fn is_refreshed(self, now: u32, id: EntityId) -> bool {
        let cycle = Scope::REFRESH_TICKS;
        // The number of ticks since the entity was due. Snapshots are an even number of ticks apart, but the cycle is
        // odd, so an odd difference belongs to the previous cycle.
        let ago = (now % cycle + cycle - id.0 % cycle) % cycle;
        let ago = if ago.is_multiple_of(SNAPSHOT_TICKS) { ago } else { ago + cycle };
        ago < self.snapshots
    }
}

impl Default for Gaps {
    /// Returns the gaps for a client that receives every snapshot of its scope.
    fn default() -> Self {
        Self::new(0, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An unchanged entity that was due in a skipped snapshot is in the next snapshot.
    #[test]
    fn client_with_fewer_snapshots_misses_no_entity() {
        for interval in [2, 4, 6, 10, 24, 60, 122, 400] {
            for id in (0..200).map(EntityId) {
                let mut reported = 0;
                for now in (1_000..4_000).step_by(interval as usize) {
                    if Gaps::new(0, interval).is_refreshed(now, id) {
                        reported = now;
                    }
                    let age = if reported == 0 { now - 1_000 } else { now - reported };
                    assert!(age <= 2 * Scope::REFRESH_TICKS + interval, "{id:?} every {interval} ticks");
                }
            }
        }
    }

    #[test]
    fn clients_with_similar_gaps_share_snapshots() {
        assert_eq!(Gaps::new(20, 2), Gaps::default());
        assert_eq!((Gaps::default().changes, Gaps::default().snapshots), (REPORT_TICKS, SNAPSHOT_TICKS));
        assert_eq!(Gaps::new(70, 12), Gaps::new(80, 16));
        assert!(Gaps::new(u32::MAX, u32::MAX).changes >= u32::MAX / 2);
    }
}
