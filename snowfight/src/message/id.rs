use rakwire::codec::rabbit::Pack;

/// The id of an entity, which is never reused in a world.
///
/// ```
/// assert!(snowfight::message::EntityId(1) < snowfight::message::EntityId(301));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Pack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct EntityId(pub u32);

/// The id of a player: one per connection that has joined, from 1; free ids are reused.
///
/// ```
/// assert_eq!(snowfight::message::PlayerId(1).0, 1);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Pack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PlayerId(pub u32);

/// The number of a request; its response has the same number.
///
/// ```
/// assert_eq!(snowfight::message::Channel(7).0, 7);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Pack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Channel(pub u32);
