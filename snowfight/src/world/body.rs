//! The state of objects and players.

use super::cuboid::Cuboid;
use super::rules::{DURABILITY, HEALTH, PLAYER_SIZE, object_size};
use crate::message::{Direction, Entity, EntityId, EntityKind, Object, ObjectKind, Player, PlayerId, Point};

/// The location of an object.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Place {
    /// On the ground.
    Standing,
    /// Above the head of a player.
    Held { by: EntityId },
    /// Thrown.
    Flying { velocity: Point, thrower: EntityId },
}

/// A tree or a mushroom.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ObjectBody {
    pub(super) id: EntityId,
    pub(super) kind: ObjectKind,
    pub(super) position: Point,
    pub(super) durability: Option<f32>,
    pub(super) health: u32,
    pub(super) place: Place,
}

impl ObjectBody {
    pub(super) const fn new(id: EntityId, kind: ObjectKind, position: Point) -> Self {
        Self { id, kind, position, durability: Some(DURABILITY), health: HEALTH, place: Place::Standing }
    }

    pub(super) fn cuboid(&self) -> Cuboid {
        Cuboid::standing(self.position, object_size(self.kind))
    }

    /// Puts a dropped object on the ground. It stays loose, so a player can pick it up immediately.
    pub(super) const fn put_down(&mut self) {
        self.place = Place::Standing;
        self.position.z = 0.0;
        self.durability = Some(0.0);
    }

    pub(super) const fn entity(&self) -> Entity {
        let Self { id, kind, position, durability, health, .. } = *self;
        let object = Object { position, kind, durability, health, max_health: HEALTH };
        Entity { id, kind: EntityKind::Object(object) }
    }
}

/// A player.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PlayerBody {
    pub(super) id: EntityId,
    pub(super) owner: PlayerId,
    pub(super) position: Point,
    pub(super) movement: Direction,
    pub(super) holding: Option<EntityId>,
    pub(super) breaking: Option<EntityId>,
    pub(super) health: u32,
}

impl PlayerBody {
    pub(super) const fn new(id: EntityId, owner: PlayerId, position: Point) -> Self {
        let movement = Direction::NONE;
        Self { id, owner, position, movement, holding: None, breaking: None, health: HEALTH }
    }

    pub(super) fn cuboid(&self) -> Cuboid {
        Cuboid::standing(self.position, PLAYER_SIZE)
    }

    pub(super) const fn entity(&self) -> Entity {
        let Self { id, owner, position, movement, holding, breaking, health } = *self;
        let player = Player { position, movement, holding, breaking, owner, health, max_health: HEALTH };
        Entity { id, kind: EntityKind::Player(player) }
    }
}
