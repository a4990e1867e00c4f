//! Types for bitcode and postcard with the same fields as the game's messages.

use bitcode::{Decode, Encode};
use serde::{Deserialize, Serialize};
use snowfight::message::{EntityKind, ObjectKind};

#[derive(Encode, Decode, Serialize, Deserialize)]
pub(crate) struct Event {
    time: u32,
    entities: Vec<Entity>,
}

#[derive(Encode, Decode, Serialize, Deserialize)]
struct Entity {
    id: u32,
    kind: Kind,
}

#[derive(Encode, Decode, Serialize, Deserialize)]
enum Kind {
    Object { position: [f32; 3], kind: Object, durability: Option<f32>, health: u32, max_health: u32 },
    Player(Player),
    Dead,
}

#[derive(Encode, Decode, Serialize, Deserialize)]
struct Player {
    position: [f32; 3],
    movement: u8,
    holding: Option<u32>,
    breaking: Option<u32>,
    owner: u32,
    health: u32,
    max_health: u32,
}

#[derive(Encode, Decode, Serialize, Deserialize)]
enum Object {
    Tree,
    Mushroom,
}

impl Event {
    pub(crate) fn new(time: u32, entities: &[snowfight::message::Entity]) -> Self {
        Self { time, entities: entities.iter().map(Entity::new).collect() }
    }

    /// Returns the size in bytes with every field rounded up to whole bytes: 1 for an index or an option, 4 for a
    /// number.
    pub(crate) fn size(&self) -> usize {
        let option = |value: bool| 1 + if value { 4 } else { 0 };
        let entity = |entity: &Entity| {
            4 + 1
                + match &entity.kind {
                    Kind::Object { durability, .. } => 12 + 1 + option(durability.is_some()) + 4 + 4,
                    Kind::Player(player) => {
                        12 + 1 + option(player.holding.is_some()) + option(player.breaking.is_some()) + 12
                    }
                    Kind::Dead => 0,
                }
        };
        1 + 4 + 1 + 4 + self.entities.iter().map(entity).sum::<usize>()
    }
}

impl Entity {
    fn new(entity: &snowfight::message::Entity) -> Self {
        let kind = match entity.kind {
            EntityKind::Object(object) => Kind::Object {
                position: [object.position.x, object.position.y, object.position.z],
                kind: match object.kind {
                    ObjectKind::Tree => Object::Tree,
                    ObjectKind::Mushroom => Object::Mushroom,
                },
                durability: object.durability,
                health: object.health,
                max_health: object.max_health,
            },
            EntityKind::Player(player) => Kind::Player(Player {
                position: [player.position.x, player.position.y, player.position.z],
                movement: player.movement.0,
                holding: player.holding.map(|id| id.0),
                breaking: player.breaking.map(|id| id.0),
                owner: player.owner.0,
                health: player.health,
                max_health: player.max_health,
            }),
            EntityKind::Dead => Kind::Dead,
        };
        Self { id: entity.id.0, kind }
    }
}
