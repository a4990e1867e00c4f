use rakwire::codec::rabbit::Pack;

use super::{Direction, EntityId, PlayerId, Point};

/// One thing of the world, as a snapshot tells it.
#[derive(Clone, Copy, Debug, PartialEq, Pack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Entity {
    /// Its name.
    pub id: EntityId,
    /// What it is.
    pub kind: EntityKind,
}

/// What an entity is.
///
/// ```
/// use rakwire::codec::rabbit::unpack;
/// use snowfight::message::EntityKind;
///
/// assert_eq!(unpack::<EntityKind>(&[0b10]), Ok(EntityKind::Dead));
/// assert!(unpack::<EntityKind>(&[0b11]).is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Pack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum EntityKind {
    /// A tree or a mushroom.
    Object(Object),
    /// Somebody.
    Player(Player),
    /// It is no more.
    Dead,
}

/// A tree or a mushroom: it stands, is held, or flies.
#[derive(Clone, Copy, Debug, PartialEq, Pack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Object {
    /// Where its base is.
    pub position: Point,
    /// What it looks like.
    pub kind: ObjectKind,
    /// How many seconds of breaking it takes until a player has it; nothing when it cannot be broken.
    pub durability: Option<f32>,
    /// How often it can still be hit.
    pub health: u32,
    /// Its health when it was whole.
    pub max_health: u32,
}

/// What an object looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Pack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum ObjectKind {
    /// Tall.
    Tree,
    /// Small.
    Mushroom,
}

/// A player.
#[derive(Clone, Copy, Debug, PartialEq, Pack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Player {
    /// Where the feet are.
    pub position: Point,
    /// Where it walks.
    pub movement: Direction,
    /// The object above its head.
    pub holding: Option<EntityId>,
    /// The object that it tries to break.
    pub breaking: Option<EntityId>,
    /// Who controls it.
    pub owner: PlayerId,
    /// How often it can still be hit.
    pub health: u32,
    /// Its health when it came.
    pub max_health: u32,
}
