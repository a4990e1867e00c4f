use rakwire::codec::rabbit::{List, Pack, Text, Unpack};

use super::{Channel, Entity, PlayerId};

/// A message of a server. Lists of entities and texts borrow from the packed bytes, or from the data to pack.
///
/// ```
/// use rakwire::codec::rabbit::unpack;
/// use snowfight::message::{Event, EventKind, GameOver, ServerMessage};
///
/// let lost = Event { time: 7, kind: EventKind::GameOver(GameOver::Loser) };
/// assert_eq!(unpack(&[0x38, 0x08]), Ok(ServerMessage::Event(lost)));
/// ```
#[derive(Clone, Debug, PartialEq, Pack, Unpack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub enum ServerMessage<'a> {
    /// Something happened.
    Event(Event<'a>),
    /// The response to a request.
    Response(Response<'a>),
}

/// An event and its tick.
#[derive(Clone, Debug, PartialEq, Pack, Unpack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Event<'a> {
    /// The tick: 60 per second since the start of the server, with wrapping.
    pub time: u32,
    /// The kind of event.
    pub kind: EventKind<'a>,
}

/// The kind of an event.
#[derive(Clone, Debug, PartialEq, Pack, Unpack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub enum EventKind<'a> {
    /// A tick has passed.
    Snapshot(Snapshot<'a>),
    /// The game of this client is over.
    GameOver(GameOver),
}

/// The result of a game.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Pack, Unpack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub enum GameOver {
    /// The client has lost.
    Loser,
    /// The client has won.
    Winner,
}

/// The world: players, then objects, then dead entities.
#[derive(Clone, Debug, Default, PartialEq, Pack, Unpack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Snapshot<'a> {
    /// Every entity.
    #[cfg_attr(feature = "serde", serde(serialize_with = "super::serialize::list"))]
    pub entities: List<'a, Entity>,
}

/// A response.
#[derive(Clone, Debug, PartialEq, Pack, Unpack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Response<'a> {
    /// The channel of the request.
    pub channel: Channel,
    /// The kind of response.
    pub kind: ResponseKind<'a>,
}

/// The kind of a response.
#[derive(Clone, Debug, PartialEq, Pack, Unpack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub enum ResponseKind<'a> {
    /// The request is rejected for this reason.
    Error(#[cfg_attr(feature = "serde", serde(serialize_with = "super::serialize::text"))] Text<'a>),
    /// The response to a ping.
    Pong,
    /// The client has joined the game.
    Connect(Connect<'a>),
}

/// The response to a client that joins.
#[derive(Clone, Debug, PartialEq, Pack, Unpack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Connect<'a> {
    /// The player of the client.
    pub player: PlayerId,
    /// The world with its player in it.
    pub snapshot: Snapshot<'a>,
}
