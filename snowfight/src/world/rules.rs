//! The numbers of the game (docs/game.md#rules).

use crate::message::{ObjectKind, Point};

/// Ticks in a second.
pub const TICKS_PER_SECOND: u32 = 60;
/// The most players at a time; the original has no bound.
pub const MAX_PLAYERS: usize = 256;
/// How many trees there are, and how many mushrooms.
pub const OBJECTS_OF_A_KIND: u32 = 150;
/// All objects of a new world.
pub const MAX_OBJECTS: usize = 2 * OBJECTS_OF_A_KIND as usize;
/// How many of the dead are told; the oldest are forgotten first. The original forgets none.
pub const MAX_DEAD: usize = 64;
/// The most entities of a snapshot.
pub const MAX_ENTITIES: usize = MAX_PLAYERS + MAX_OBJECTS + MAX_DEAD;
/// The health that everything begins with.
pub const HEALTH: u32 = 3;
/// Tiles a second.
pub const SPEED: f32 = 5.0;
/// How far from itself a player can break something, in tiles.
pub const REACH: f32 = 2.0;
/// What a whole object resists being broken, in seconds.
pub const DURABILITY: f32 = 1.0;
/// How high above its holder's feet an object is held.
pub const HOLD_HEIGHT: f32 = 1.3125;
/// Tiles a second along the straight line to the target.
pub const THROW_SPEED: f32 = 30.0;
/// What pulls thrown objects down, in tiles a second a second.
pub const GRAVITY: Point = Point::new(0.0, 0.0, -10.0);
/// The longest throw in tiles; a target further away only gives the direction. The original has no bound.
pub const LONGEST_THROW: f32 = 128.0;

/// One step of the physics in seconds.
pub(super) const STEP: f32 = 1.0 / 120.0;
/// A tick in seconds.
pub(super) const TICK: f32 = 1.0 / 60.0;
/// The longest time that is caught up with, in seconds.
pub(super) const LONGEST_BACKLOG: f32 = 1.0;
/// Ticks between two springs: in each as many objects grow as have ended. In the original nothing grows.
pub(super) const SPRING: u32 = 10 * TICKS_PER_SECOND;
/// Of what a hit takes.
pub(super) const DAMAGE: u32 = 1;

/// The size of a player: west to east, south to north, upwards.
pub(super) const PLAYER_SIZE: Point = sixteenths(14.0, 3.0, 21.0);

/// The size of an object.
pub(super) const fn object_size(kind: ObjectKind) -> Point {
    match kind {
        ObjectKind::Tree => sixteenths(14.0, 3.0, 30.0),
        ObjectKind::Mushroom => sixteenths(9.0, 3.0, 7.0),
    }
}

const fn sixteenths(x: f32, y: f32, z: f32) -> Point {
    Point::new(x / 16.0, y / 16.0, z / 16.0)
}
