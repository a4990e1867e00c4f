//! Movement of players up to an obstacle and along it.

use super::World;
use super::body::{Place, PlayerBody};
use super::cuboid::{Axis, Contact, Cuboid};
use super::rules::SPEED;
use super::terrain::walls_near;
use crate::message::{Direction, Point};

/// The maximum number of contacts handled in one step: one per horizontal axis, and one more.
const CONTACTS: usize = 3;

impl PlayerBody {
    /// Returns the velocity in tiles per second. Opposite directions cancel out, and diagonal movement is not faster.
    pub(super) fn velocity(&self) -> Point {
        let one = |direction| if self.movement.has(direction) { 1.0 } else { 0.0 };
        let x = one(Direction::EAST) - one(Direction::WEST);
        let y = one(Direction::NORTH) - one(Direction::SOUTH);
        let speed = if x != 0.0 && y != 0.0 { SPEED * core::f32::consts::FRAC_1_SQRT_2 } else { SPEED };
        Point::new(x * speed, y * speed, 0.0)
    }
}

impl World {
    /// Moves all players by one step, in the order in which they joined.
    pub(super) fn walk(&mut self, seconds: f32) {
        for index in 0..self.players.len() {
            let Some(body) = self.players.get(index).copied() else { continue };
            let position = self.path(&body, body.velocity() * seconds);
            if let Some(body) = self.players.get_mut(index) {
                body.position = position;
            }
        }
    }

    /// Returns the position of a player after a motion that obstacles may stop or deflect.
    pub(super) fn path(&self, body: &PlayerBody, mut motion: Point) -> Point {
        let mut moved = *body;
        for _ in 0..CONTACTS {
            if motion == Point::default() {
                break;
            }
            let Some(contact) = self.first_contact(&moved, motion) else {
                moved.position = moved.position + motion;
                break;
            };
            let half = (contact.axis.of(moved.cuboid().max) - contact.axis.of(moved.cuboid().min)) / 2.0;
            let forward = contact.axis.of(motion) > 0.0;
            moved.position = moved.position + motion * contact.time;
            let beside = if forward { contact.face - half } else { contact.face + half };
            contact.axis.set(&mut moved.position, beside);
            motion = motion * (1.0 - contact.time);
            contact.axis.set(&mut motion, 0.0);
        }
        moved.position
    }

    fn first_contact(&self, body: &PlayerBody, motion: Point) -> Option<Contact> {
        let cuboid = body.cuboid();
        let contacts = self.obstacles(body, cuboid.along(motion)).filter_map(|obstacle| {
            let contact = cuboid.sweep(motion, &obstacle)?;
            // Players do not step onto obstacles, so vertical contacts are ignored.
            (contact.axis != Axis::Z).then_some(contact)
        });
        contacts.min_by(|a, b| a.time.total_cmp(&b.time))
    }

    /// Returns the obstacles for a player in a region: objects on the ground, other players, and water.
    fn obstacles(&self, body: &PlayerBody, region: Cuboid) -> impl Iterator<Item = Cuboid> {
        let id = body.id;
        let standing = self.objects.iter().filter(|object| object.place == Place::Standing);
        let others = self.players.iter().filter(move |other| other.id != id);
        let bodies = standing.map(|object| object.cuboid()).chain(others.map(PlayerBody::cuboid));
        bodies.filter(move |cuboid| cuboid.overlaps(&region)).chain(walls_near(&region))
    }

    /// Separates overlapping players by moving each by half of the overlap. Then pushes them out of objects, and
    /// finally out of water.
    pub(super) fn separate(&mut self) {
        for first in 0..self.players.len() {
            for second in first + 1..self.players.len() {
                self.separate_pair(first, second);
            }
        }
        for index in 0..self.players.len() {
            let Some(mut body) = self.players.get(index).copied() else { continue };
            self.push_out(&mut body);
            if let Some(place) = self.players.get_mut(index) {
                *place = body;
            }
        }
    }

    /// Pushes a player out of overlapping objects and water.
    pub(super) fn push_out(&self, body: &mut PlayerBody) {
        for object in self.objects.iter().filter(|object| object.place == Place::Standing) {
            push_out_of(body, &object.cuboid());
        }
        for wall in walls_near(&body.cuboid()) {
            push_out_of(body, &wall);
        }
    }

    fn separate_pair(&mut self, first: usize, second: usize) {
        let Ok([first, second]) = self.players.get_disjoint_mut([first, second]) else { return };
        if let Some(displacement) = first.cuboid().separation_from(&second.cuboid()) {
            first.position = first.position + displacement * 0.5;
            second.position = second.position - displacement * 0.5;
        }
    }
}

fn push_out_of(body: &mut PlayerBody, obstacle: &Cuboid) {
    if let Some(displacement) = body.cuboid().separation_from(obstacle) {
        body.position = body.position + displacement;
    }
}
