use rakwire::codec::rabbit::{Pack, Unpack};

/// The id of an entity. A world never reuses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Pack, Unpack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct EntityId(pub u32);

/// The id of a participant: one per joined connection, starting at 1. Ids of departed participants are reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Pack, Unpack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PlayerId(pub u32);

/// The number of a request, chosen by the client. The response has the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Pack, Unpack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Channel(pub u32);
