use rakwire::codec::rabbit::Pack;

/// Tells an entity from all others of a world, also from those that are gone.
///
/// ```
/// assert!(snowfight::message::EntityId(1) < snowfight::message::EntityId(301));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Pack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct EntityId(pub u32);

/// Who controls a player: one for each connection that joined, from 1, used again when it is free.
///
/// ```
/// assert_eq!(snowfight::message::PlayerId(1).0, 1);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Pack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PlayerId(pub u32);

/// What a client calls a request; its response has the same.
///
/// ```
/// assert_eq!(snowfight::message::Channel(7).0, 7);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Pack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Channel(pub u32);
