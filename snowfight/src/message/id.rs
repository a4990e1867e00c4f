use rakwire::codec::rabbit::{Pack, Unpack};

/// The id of an entity, which is never reused in a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Pack, Unpack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct EntityId(pub u32);

/// The id of a player: one per connection that has joined, from 1; free ids are reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Pack, Unpack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PlayerId(pub u32);

/// The number of a request; its response has the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Pack, Unpack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Channel(pub u32);
