//! Thrown objects: their flight, their hits, and the damage.

use heapless::Vec;

use super::World;
use super::body::{ObjectBody, Place};
use super::cuboid::Cuboid;
use super::rules::{DAMAGE, GRAVITY, MAX_OBJECTS};
use super::terrain::walls_near;
use crate::message::{EntityId, Point};

/// The target that a thrown object hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Body(EntityId),
    /// The ground, or a wall above water.
    Ground,
}

/// A thrown object, and the target that it hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hit {
    projectile: EntityId,
    target: Target,
}

pub(super) type Hits = Vec<Hit, MAX_OBJECTS>;

impl World {
    /// Applies gravity to flying objects.
    pub(super) fn accelerate(&mut self, seconds: f32) {
        for object in &mut self.objects {
            if let Place::Flying { velocity, .. } = &mut object.place {
                *velocity = *velocity + GRAVITY * seconds;
            }
        }
    }

    /// Moves the flying objects that hit nothing, and returns the hits of the others.
    pub(super) fn fly(&mut self, seconds: f32) -> Hits {
        let mut hits = Hits::new();
        for index in 0..self.objects.len() {
            let Some(object) = self.objects.get(index).copied() else { continue };
            let Place::Flying { velocity, thrower } = object.place else { continue };
            let motion = velocity * seconds;
            if let Some(target) = self.first_hit(&object, thrower, motion) {
                // This cannot fail: there is a slot for every object.
                let _ = hits.push(Hit { projectile: object.id, target });
            } else if let Some(object) = self.objects.get_mut(index) {
                object.position = object.position + motion;
            }
        }
        hits
    }

    fn first_hit(&self, object: &ObjectBody, thrower: EntityId, motion: Point) -> Option<Target> {
        let cuboid = object.cuboid();
        let players = self.players.iter().filter(|body| body.id != thrower);
        let players = players.map(|body| (Target::Body(body.id), body.cuboid()));
        let others = self.objects.iter().filter(|other| other.id != object.id);
        let others = others.map(|other| (Target::Body(other.id), other.cuboid()));
        let walls = walls_near(&cuboid.along(motion)).map(|wall| (Target::Ground, wall));
        let bodies = players.chain(others).chain(walls);
        let met = bodies.filter_map(|(target, other)| Some((target, time_of(&cuboid, motion, &other)?)));
        let below = cuboid.min.z + motion.z;
        let ground = (below <= 0.0).then(|| (Target::Ground, cuboid.min.z / (cuboid.min.z - below)));
        let first = met.chain(ground).min_by(|a, b| a.1.total_cmp(&b.1));
        first.map(|(target, _)| target)
    }

    /// Applies the damage of hits.
    pub(super) fn attack(&mut self, hits: &Hits) {
        for hit in hits {
            if let Target::Body(target) = hit.target {
                self.damage(target);
            }
            self.remove_object(hit.projectile);
        }
    }

    fn damage(&mut self, target: EntityId) {
        let body = self.players.iter_mut().find(|body| body.id == target);
        let object = self.objects.iter_mut().find(|object| object.id == target);
        if let Some(body) = body {
            body.health = body.health.saturating_sub(DAMAGE);
            if body.health == 0 {
                let owner = body.owner;
                self.remove_player(target);
                // This cannot fail: there is a slot for every player.
                let _ = self.fallen.push(owner);
            }
        } else if let Some(object) = object {
            object.health = object.health.saturating_sub(DAMAGE);
            if object.health == 0 {
                self.remove_object(target);
            }
        }
    }
}

/// Returns the fraction of a motion before a box touches another one, from 0 to 1; 0 if they overlap already.
fn time_of(cuboid: &Cuboid, motion: Point, other: &Cuboid) -> Option<f32> {
    if cuboid.overlaps(other) { Some(0.0) } else { Some(cuboid.sweep(motion, other)?.time) }
}
