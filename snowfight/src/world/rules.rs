//! The constants of the game (docs/game.md#rules).

use crate::message::{ObjectKind, Point};

/// Ticks per second.
pub const TICKS_PER_SECOND: u32 = 60;
/// The maximum number of players; the original game has no limit.
pub const MAX_PLAYERS: usize = 256;
/// The number of trees, and also the number of mushrooms.
pub const OBJECTS_PER_KIND: u32 = 150;
/// The number of objects in a new world.
pub const MAX_OBJECTS: usize = 2 * OBJECTS_PER_KIND as usize;
/// The maximum number of dead entities in a snapshot; the oldest are dropped first. The original game keeps all of
/// them.
pub const MAX_DEAD: usize = 64;
/// The maximum number of entities in a snapshot.
pub const MAX_ENTITIES: usize = MAX_PLAYERS + MAX_OBJECTS + MAX_DEAD;
/// The initial health of players and objects.
pub const HEALTH: u32 = 3;
/// The walking speed in tiles per second.
pub const SPEED: f32 = 5.0;
/// The distance within which a player can break an object, in tiles.
pub const REACH: f32 = 2.0;
/// The time that a player needs to break an object loose, in seconds.
pub const DURABILITY: f32 = 1.0;
/// The height of a held object above the feet of its player, in tiles.
pub const HOLD_HEIGHT: f32 = 1.3125;
/// The speed of a throw along the straight line to the target, in tiles per second.
pub const THROW_SPEED: f32 = 30.0;
/// The acceleration of thrown objects, in tiles per second squared.
pub const GRAVITY: Point = Point::new(0.0, 0.0, -10.0);
/// The maximum distance of a throw, in tiles. A more distant target determines only the direction. The original game
/// has no limit.
pub const LONGEST_THROW: f32 = 128.0;

/// The length of a physics step, in seconds.
pub(super) const STEP: f32 = 1.0 / 120.0;
/// The length of a tick, in seconds.
pub(super) const TICK: f32 = 1.0 / 60.0;
/// The maximum time simulated in one update, in seconds.
pub(super) const MAX_BACKLOG: f32 = 1.0;
/// The interval at which removed objects regrow, in ticks. In the original game they do not regrow.
pub(super) const REGROWTH_TICKS: u32 = 10 * TICKS_PER_SECOND;
/// The health that a hit takes.
pub(super) const DAMAGE: u32 = 1;

/// The size of a player in tiles: west to east, south to north, bottom to top.
pub(super) const PLAYER_SIZE: Point = sixteenths(14.0, 3.0, 21.0);

/// Returns the size of an object in tiles.
pub(super) const fn object_size(kind: ObjectKind) -> Point {
    match kind {
        ObjectKind::Tree => sixteenths(14.0, 3.0, 30.0),
        ObjectKind::Mushroom => sixteenths(9.0, 3.0, 7.0),
    }
}

const fn sixteenths(x: f32, y: f32, z: f32) -> Point {
    Point::new(x / 16.0, y / 16.0, z / 16.0)
}
