//! How players walk: until something is in the way, then along it.

use super::World;
use super::body::{Place, Walker};
use super::cuboid::{Axis, Contact, Cuboid};
use super::rules::SPEED;
use super::terrain::walls_near;
use crate::message::{Direction, Point};

/// How many things a player can meet in one step: one along each axis of the ground, and one more.
const CONTACTS: usize = 3;

impl Walker {
    /// Where it wants to, in tiles a second: opposite directions cancel each other, diagonals are no faster.
    pub(super) fn velocity(&self) -> Point {
        let one = |direction| if self.movement.has(direction) { 1.0 } else { 0.0 };
        let x = one(Direction::EAST) - one(Direction::WEST);
        let y = one(Direction::NORTH) - one(Direction::SOUTH);
        let speed = if x != 0.0 && y != 0.0 { SPEED * core::f32::consts::FRAC_1_SQRT_2 } else { SPEED };
        Point::new(x * speed, y * speed, 0.0)
    }
}

impl World {
    /// All players take a step, in the order in which they came.
    pub(super) fn walk(&mut self, seconds: f32) {
        for index in 0..self.walkers.len() {
            let Some(walker) = self.walkers.get(index).copied() else { continue };
            let position = self.path(&walker, walker.velocity() * seconds);
            if let Some(walker) = self.walkers.get_mut(index) {
                walker.position = position;
            }
        }
    }

    /// Where a motion ends.
    pub(super) fn path(&self, walker: &Walker, mut motion: Point) -> Point {
        let mut moved = *walker;
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

    fn first_contact(&self, walker: &Walker, motion: Point) -> Option<Contact> {
        let cuboid = walker.cuboid();
        let contacts = self.obstacles(walker, cuboid.along(motion)).filter_map(|obstacle| {
            let contact = cuboid.sweep(motion, &obstacle)?;
            // Nobody climbs.
            (contact.axis != Axis::Z).then_some(contact)
        });
        contacts.min_by(|a, b| a.time.total_cmp(&b.time))
    }

    /// What stands in a player's way in a region: objects on the ground, other players, water.
    fn obstacles(&self, walker: &Walker, region: Cuboid) -> impl Iterator<Item = Cuboid> {
        let id = walker.id;
        let standing = self.things.iter().filter(|thing| thing.place == Place::Standing);
        let others = self.walkers.iter().filter(move |other| other.id != id);
        let bodies = standing.map(|thing| thing.cuboid()).chain(others.map(Walker::cuboid));
        bodies.filter(move |cuboid| cuboid.overlaps(&region)).chain(walls_near(&region))
    }

    /// Takes players out of what they stand in: each other by halves, the rest all the way, water last.
    pub(super) fn separate(&mut self) {
        for first in 0..self.walkers.len() {
            for second in first + 1..self.walkers.len() {
                self.separate_pair(first, second);
            }
        }
        for index in 0..self.walkers.len() {
            let Some(mut walker) = self.walkers.get(index).copied() else { continue };
            self.free(&mut walker);
            if let Some(place) = self.walkers.get_mut(index) {
                *place = walker;
            }
        }
    }

    /// Takes a player out of the objects and the water that it stands in.
    pub(super) fn free(&self, walker: &mut Walker) {
        for thing in self.things.iter().filter(|thing| thing.place == Place::Standing) {
            leave(walker, &thing.cuboid());
        }
        for wall in walls_near(&walker.cuboid()) {
            leave(walker, &wall);
        }
    }

    fn separate_pair(&mut self, first: usize, second: usize) {
        let Ok([first, second]) = self.walkers.get_disjoint_mut([first, second]) else { return };
        if let Some(way) = first.cuboid().way_out_of(&second.cuboid()) {
            first.position = first.position + way * 0.5;
            second.position = second.position - way * 0.5;
        }
    }
}

fn leave(walker: &mut Walker, obstacle: &Cuboid) {
    if let Some(way) = walker.cuboid().way_out_of(obstacle) {
        walker.position = walker.position + way;
    }
}
