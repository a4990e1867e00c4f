//! Thrown objects: how they fly, what they hit, and what that does.

use heapless::Vec;

use super::World;
use super::body::{Place, Thing};
use super::cuboid::Cuboid;
use super::rules::{DAMAGE, GRAVITY, MAX_OBJECTS};
use super::terrain::walls_near;
use crate::message::{EntityId, Point};

/// What a thrown object has hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Body(EntityId),
    /// A wall above water, or the ground.
    Ground,
}

/// Which object hit what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hit {
    projectile: EntityId,
    target: Target,
}

pub(super) type Hits = Vec<Hit, MAX_OBJECTS>;

impl World {
    /// What flies falls.
    pub(super) fn accelerate(&mut self, seconds: f32) {
        for thing in &mut self.things {
            if let Place::Flying { velocity, .. } = &mut thing.place {
                *velocity = *velocity + GRAVITY * seconds;
            }
        }
    }

    /// What flies moves on, if it hits nothing.
    pub(super) fn fly(&mut self, seconds: f32) -> Hits {
        let mut hits = Hits::new();
        for index in 0..self.things.len() {
            let Some(thing) = self.things.get(index).copied() else { continue };
            let Place::Flying { velocity, thrower } = thing.place else { continue };
            let motion = velocity * seconds;
            if let Some(target) = self.first_hit(&thing, thrower, motion) {
                // There is room for every object.
                let _ = hits.push(Hit { projectile: thing.id, target });
            } else if let Some(thing) = self.things.get_mut(index) {
                thing.position = thing.position + motion;
            }
        }
        hits
    }

    fn first_hit(&self, thing: &Thing, thrower: EntityId, motion: Point) -> Option<Target> {
        let cuboid = thing.cuboid();
        let players = self.walkers.iter().filter(|walker| walker.id != thrower);
        let players = players.map(|walker| (Target::Body(walker.id), walker.cuboid()));
        let others = self.things.iter().filter(|other| other.id != thing.id);
        let others = others.map(|other| (Target::Body(other.id), other.cuboid()));
        let walls = walls_near(&cuboid.along(motion)).map(|wall| (Target::Ground, wall));
        let bodies = players.chain(others).chain(walls);
        let met = bodies.filter_map(|(target, other)| Some((target, time_of(&cuboid, motion, &other)?)));
        let below = cuboid.min.z + motion.z;
        let ground = (below <= 0.0).then(|| (Target::Ground, cuboid.min.z / (cuboid.min.z - below)));
        let first = met.chain(ground).min_by(|a, b| a.1.total_cmp(&b.1));
        first.map(|(target, _)| target)
    }

    /// What the hits do.
    pub(super) fn attack(&mut self, hits: &Hits) {
        for hit in hits {
            if let Target::Body(target) = hit.target {
                self.damage(target);
            }
            self.end_thing(hit.projectile);
        }
    }

    fn damage(&mut self, target: EntityId) {
        let walker = self.walkers.iter_mut().find(|walker| walker.id == target);
        let thing = self.things.iter_mut().find(|thing| thing.id == target);
        if let Some(walker) = walker {
            walker.health = walker.health.saturating_sub(DAMAGE);
            if walker.health == 0 {
                let owner = walker.owner;
                self.end_player(target);
                // There is room for every player.
                let _ = self.fallen.push(owner);
            }
        } else if let Some(thing) = thing {
            thing.health = thing.health.saturating_sub(DAMAGE);
            if thing.health == 0 {
                self.end_thing(target);
            }
        }
    }
}

/// When a motion meets a box, 0 to 1; at once if they stand in each other.
fn time_of(cuboid: &Cuboid, motion: Point, other: &Cuboid) -> Option<f32> {
    if cuboid.overlaps(other) { Some(0.0) } else { Some(cuboid.sweep(motion, other)?.time) }
}
