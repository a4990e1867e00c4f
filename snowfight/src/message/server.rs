use rakwire::codec::rabbit::{List, Pack, Text, Unpack};

use super::{Channel, Entity, PlayerId};

/// A message from the server. Entity lists and texts borrow from the received bytes, or from the data to pack.
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
    /// An event in the game.
    Event(Event<'a>),
    /// The response to a request.
    Response(Response<'a>),
}

/// An event, and the tick in which it happened.
#[derive(Clone, Debug, PartialEq, Pack, Unpack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Event<'a> {
    /// The tick in which it happened: 60 per second since the start of the server, with wrap-around.
    pub time: u32,
    /// The kind of event.
    pub kind: EventKind<'a>,
}

/// The kind of an event.
#[derive(Clone, Debug, PartialEq, Pack, Unpack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub enum EventKind<'a> {
    /// The world after a tick.
    Snapshot(Snapshot<'a>),
    /// The game is over for this client.
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
    /// The entities.
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
    /// The server rejects the request, for this reason.
    Error(#[cfg_attr(feature = "serde", serde(serialize_with = "super::serialize::text"))] Text<'a>),
    /// The response to a ping.
    Pong,
    /// The client has joined the game.
    Connect(Connect<'a>),
}

/// The response to a client that has joined.
#[derive(Clone, Debug, PartialEq, Pack, Unpack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Connect<'a> {
    /// The id of the client's player.
    pub player: PlayerId,
    /// The world, which contains the player.
    pub snapshot: Snapshot<'a>,
}
