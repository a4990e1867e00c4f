//! Converts the game's entities to and from the integer fields of a replication class.

use rakwire_plugins::replication::{Class, Field};
use snowfight::message::{
    Direction, Entity, EntityId, EntityKind, Object, ObjectKind, Player, PlayerId, Point,
};

/// The maximum number of fields of an entity.
pub const FIELDS: usize = 10;
/// The resolution of positions: steps per tile.
pub const POSITION_SCALE: f32 = 256.0;
/// The default viewing distance of a player, in tiles. It exceeds the distance to the corners of the demo's page.
pub const NEAR: f32 = 20.0;
/// The largest coordinate that a position field can hold, in tiles from the middle of the world. No throw from the
/// shore lands farther away.
const HALF_WIDTH: f32 = 256.0;
/// A horizontal coordinate: 17 bits, or a change of 9 bits.
const ALONG: Field = Field::new(17).or_short(9);
const HEIGHT: Field = Field::new(14).or_short(8);
/// The id of an entity, or 0 for none; no entity has the id 0.
const ID: Field = Field::new(32);
/// The resolution of the remaining time to break an object loose: steps per second.
const DURABILITY_SCALE: f32 = 200.0;

pub(crate) const PLAYER: u8 = 0;
const OBJECT: u8 = 1;

/// The classes of players and objects. The fields that change most often come first.
pub(crate) static CLASSES: [Class; 2] = [
    Class {
        fields: &[
            ALONG,
            ALONG,
            // The direction of movement, the object being broken, and the object being held.
            Field::new(8),
            ID.or_short(10),
            ID.or_short(10),
            // The health, the height, the owner, and the maximum health.
            Field::new(8),
            HEIGHT,
            Field::new(16),
            Field::new(8),
            ID,
        ],
    },
    Class {
        fields: &[
            ALONG,
            ALONG,
            HEIGHT,
            // The remaining time to break the object loose (0 for a loose object), the health, the maximum health,
            // and the kind.
            Field::new(8).or_short(5),
            Field::new(8),
            Field::new(8),
            Field::new(1),
            ID,
        ],
    },
];

/// Returns the class of an entity, its field values and their number; `None` for a removed entity.
#[cfg(feature = "alloc")]
pub(crate) fn fields(entity: &Entity) -> Option<(u8, [u32; FIELDS], usize)> {
    let Entity { id, kind } = *entity;
    match kind {
        EntityKind::Player(player) => {
            let Player { position, movement, holding, breaking, owner, health, max_health } = player;
            let [x, y, z] = from_point(position);
            let [breaking, holding] = [breaking, holding].map(|id| id.map_or(0, |id| id.0));
            let movement = movement.0.into();
            let fields = [x, y, movement, breaking, holding, health, z, owner.0, max_health, id.0];
            Some((PLAYER, fields, 10))
        }
        EntityKind::Object(object) => {
            let Object { position, kind, durability, health, max_health } = object;
            let [x, y, z] = from_point(position);
            let durability = durability.map_or(0, |seconds| 1 + scaled(seconds, DURABILITY_SCALE, 0xFE));
            let fields =
                [x, y, z, durability, health, max_health, (kind == ObjectKind::Mushroom).into(), id.0];
            let mut all = [0; FIELDS];
            all.iter_mut().zip(fields).for_each(|(place, value)| *place = value);
            Some((OBJECT, all, fields.len()))
        }
        EntityKind::Dead => None,
    }
}

/// Returns the entity that these field values describe; `None` for an unknown class.
pub(crate) fn entity(class: u8, values: &[u32]) -> Option<Entity> {
    match (class, values) {
        (PLAYER, &[x, y, movement, breaking, holding, health, z, owner, max_health, id, ..]) => {
            let [breaking, holding] = [breaking, holding].map(|id| (id > 0).then_some(EntityId(id)));
            let (position, movement) = (to_point([x, y, z]), Direction(movement as u8));
            let owner = PlayerId(owner);
            let player = Player { position, movement, holding, breaking, owner, health, max_health };
            Some(Entity { id: EntityId(id), kind: EntityKind::Player(player) })
        }
        (OBJECT, &[x, y, z, durability, health, max_health, kind, id, ..]) => {
            let durability = durability.checked_sub(1).map(|parts| parts as f32 / DURABILITY_SCALE);
            let kind = if kind == 0 { ObjectKind::Tree } else { ObjectKind::Mushroom };
            let object = Object { position: to_point([x, y, z]), kind, durability, health, max_health };
            Some(Entity { id: EntityId(id), kind: EntityKind::Object(object) })
        }
        _ => None,
    }
}

/// Returns the horizontal position as field values.
#[cfg(feature = "alloc")]
pub(crate) fn along(point: Point) -> [u32; 2] {
    let [x, y, _] = from_point(point);
    [x, y]
}

#[cfg(feature = "alloc")]
fn from_point(Point { x, y, z }: Point) -> [u32; 3] {
    let along = |way: f32| scaled(way + HALF_WIDTH, POSITION_SCALE, 0x1_FFFF);
    [along(x), along(y), scaled(z, POSITION_SCALE, 0x3FFF)]
}

fn to_point([x, y, z]: [u32; 3]) -> Point {
    let along = |value: u32| value as f32 / POSITION_SCALE - HALF_WIDTH;
    Point::new(along(x), along(y), z as f32 / POSITION_SCALE)
}

/// Converts a value to the nearest whole number of steps, clamped to 0..=`most`.
#[cfg(feature = "alloc")]
fn scaled(value: f32, scale: f32, most: u32) -> u32 {
    ((value * scale + 0.5) as u32).min(most)
}
