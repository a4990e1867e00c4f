//! Breaking, holding and throwing objects.

use super::World;
use super::body::{ObjectBody, Place, PlayerBody};
use super::rules::{GRAVITY, HOLD_HEIGHT, LONGEST_THROW, REACH, THROW_SPEED};
use crate::message::{EntityId, Point};

impl World {
    /// Advances the progress of all players that are breaking an object.
    pub(super) fn advance_breaking(&mut self, seconds: f32) {
        for index in 0..self.players.len() {
            let Some(target) = self.players.get(index).and_then(|body| body.breaking) else { continue };
            let exists = self.object(target).is_some() || self.players.iter().any(|other| other.id == target);
            let object = self.objects.iter_mut().find(|object| object.id == target);
            let Some(body) = self.players.get_mut(index) else { continue };
            match object {
                Some(object) => break_one(body, object, seconds),
                None if exists => {}
                None => body.breaking = None,
            }
        }
    }

    /// Moves held objects along with their players.
    pub(super) fn carry(&mut self) {
        for object in &mut self.objects {
            let Place::Held { by } = object.place else { continue };
            if let Some(holder) = self.players.iter().find(|body| body.id == by) {
                object.position = above(holder);
            }
        }
    }

    /// Throws the object that a player holds. It has no effect if the player holds none or the target is invalid.
    pub(super) fn throw(&mut self, thrower: EntityId, target: Point) {
        let Some(body) = self.players.iter_mut().find(|body| body.id == thrower) else { return };
        let Some(held) = body.holding else { return };
        let Some(object) = self.objects.iter_mut().find(|object| object.id == held) else { return };
        let Some(velocity) = velocity(target - object.position) else { return };
        object.place = Place::Flying { velocity, thrower };
        body.holding = None;
    }

    fn object(&self, id: EntityId) -> Option<&ObjectBody> {
        self.objects.iter().find(|object| object.id == id)
    }
}

fn above(holder: &PlayerBody) -> Point {
    holder.position + Point::new(0.0, 0.0, HOLD_HEIGHT)
}

fn break_one(body: &mut PlayerBody, object: &mut ObjectBody, seconds: f32) {
    let Some(durability) = &mut object.durability else { return };
    let distance = (object.position - body.position).length();
    if body.holding.is_some() || distance > REACH {
        return;
    }
    *durability -= seconds;
    if *durability <= 0.0 {
        object.durability = None;
        object.place = Place::Held { by: body.id };
        object.position = above(body);
        body.breaking = None;
        body.holding = Some(object.id);
    }
}

/// Returns the initial velocity of a throw that lands at `distance`; `None` if the distance is zero or not finite.
fn velocity(distance: Point) -> Option<Point> {
    let length = distance.length();
    if !length.is_finite() || length == 0.0 {
        return None;
    }
    let distance = distance * (LONGEST_THROW / length).min(1.0);
    let time = length.min(LONGEST_THROW) / THROW_SPEED;
    // For a tiny distance the flight time rounds to zero, and the velocity is not finite.
    let velocity = distance * (1.0 / time) - GRAVITY * (time / 2.0);
    velocity.length().is_finite().then_some(velocity)
}
