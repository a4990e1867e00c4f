//! Breaking objects loose, holding them, throwing them.

use super::World;
use super::body::{Place, Thing, Walker};
use super::rules::{GRAVITY, HOLD_HEIGHT, LONGEST_THROW, REACH, THROW_SPEED};
use crate::message::{EntityId, Point};

impl World {
    /// All players go on breaking what they have chosen.
    pub(super) fn break_loose(&mut self, seconds: f32) {
        for index in 0..self.walkers.len() {
            let Some(target) = self.walkers.get(index).and_then(|walker| walker.breaking) else { continue };
            let exists = self.thing(target).is_some() || self.walkers.iter().any(|other| other.id == target);
            let thing = self.things.iter_mut().find(|thing| thing.id == target);
            let Some(walker) = self.walkers.get_mut(index) else { continue };
            match thing {
                Some(thing) => break_one(walker, thing, seconds),
                None if exists => {}
                None => walker.breaking = None,
            }
        }
    }

    /// What is held follows its holder.
    pub(super) fn carry(&mut self) {
        for thing in &mut self.things {
            let Place::Held { by } = thing.place else { continue };
            if let Some(holder) = self.walkers.iter().find(|walker| walker.id == by) {
                thing.position = above(holder);
            }
        }
    }

    /// A player throws what it holds. Without anything, or at no place at all, nothing happens.
    pub(super) fn throw(&mut self, thrower: EntityId, target: Point) {
        let Some(walker) = self.walkers.iter_mut().find(|walker| walker.id == thrower) else { return };
        let Some(held) = walker.holding else { return };
        let Some(thing) = self.things.iter_mut().find(|thing| thing.id == held) else { return };
        let Some(velocity) = velocity(target - thing.position) else { return };
        thing.place = Place::Flying { velocity, thrower };
        walker.holding = None;
    }

    fn thing(&self, id: EntityId) -> Option<&Thing> {
        self.things.iter().find(|thing| thing.id == id)
    }
}

fn above(holder: &Walker) -> Point {
    holder.position + Point::new(0.0, 0.0, HOLD_HEIGHT)
}

fn break_one(walker: &mut Walker, thing: &mut Thing, seconds: f32) {
    let Some(durability) = &mut thing.durability else { return };
    let distance = (thing.position - walker.position).length();
    if walker.holding.is_some() || distance > REACH {
        return;
    }
    *durability -= seconds;
    if *durability <= 0.0 {
        thing.durability = None;
        thing.place = Place::Held { by: walker.id };
        thing.position = above(walker);
        walker.breaking = None;
        walker.holding = Some(thing.id);
    }
}

/// The velocity that brings an object over this distance, as it falls; nothing for a distance that is none.
fn velocity(distance: Point) -> Option<Point> {
    let length = distance.length();
    if !length.is_finite() || length == 0.0 {
        return None;
    }
    let distance = distance * (LONGEST_THROW / length).min(1.0);
    let time = length.min(LONGEST_THROW) / THROW_SPEED;
    // A distance that is next to none takes no time at all.
    let velocity = distance * (1.0 / time) - GRAVITY * (time / 2.0);
    velocity.length().is_finite().then_some(velocity)
}
