use rakwire::codec::rabbit::{Pack, Unpack};

use super::{Direction, EntityId, PlayerId, Point};

/// An entity in a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Pack, Unpack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Entity {
    /// The id of the entity.
    pub id: EntityId,
    /// The kind of entity.
    pub kind: EntityKind,
}

impl Entity {
    /// Returns the player and the id of the entity if `owner` controls it.
    pub(crate) fn player_of(&self, owner: PlayerId) -> Option<(EntityId, &Player)> {
        self.player().filter(|(_, player)| player.owner == owner)
    }

    pub(crate) const fn player(&self) -> Option<(EntityId, &Player)> {
        if let EntityKind::Player(player) = &self.kind { Some((self.id, player)) } else { None }
    }

    pub(crate) const fn object(&self) -> Option<(EntityId, &Object)> {
        if let EntityKind::Object(object) = &self.kind { Some((self.id, object)) } else { None }
    }
}

/// The kind of an entity.
///
/// ```
/// use rakwire::codec::rabbit::unpack;
/// use snowfight::message::EntityKind;
///
/// assert_eq!(unpack::<EntityKind>(&[0b10]), Ok(EntityKind::Dead));
/// assert!(unpack::<EntityKind>(&[0b11]).is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Pack, Unpack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum EntityKind {
    /// A tree or a mushroom.
    Object(Object),
    /// A player.
    Player(Player),
    /// A removed entity.
    Dead,
}

/// A tree or a mushroom: on the ground, held, or flying.
#[derive(Clone, Copy, Debug, PartialEq, Pack, Unpack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Object {
    /// The position of its base.
    pub position: Point,
    /// The kind of object.
    pub kind: ObjectKind,
    /// The remaining time to break it loose, in seconds; `None` if it is held or flying.
    pub durability: Option<f32>,
    /// The remaining health; every hit takes 1.
    pub health: u32,
    /// The initial health.
    pub max_health: u32,
}

/// The kind of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Pack, Unpack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum ObjectKind {
    /// A tree.
    Tree,
    /// A mushroom.
    Mushroom,
}

/// A player.
#[derive(Clone, Copy, Debug, PartialEq, Pack, Unpack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Player {
    /// The position of the feet.
    pub position: Point,
    /// The direction in which it walks.
    pub movement: Direction,
    /// The object that it holds above its head.
    pub holding: Option<EntityId>,
    /// The object that it is breaking.
    pub breaking: Option<EntityId>,
    /// The participant that controls it.
    pub owner: PlayerId,
    /// The remaining health; every hit takes 1.
    pub health: u32,
    /// The initial health.
    pub max_health: u32,
}
