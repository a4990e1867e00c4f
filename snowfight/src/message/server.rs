use rakwire::codec::rabbit::{List, Pack, Text};

use super::{Channel, Entity, PlayerId};

/// What a server says. Its list of entities and its text borrow from the packed bytes, or from what is to be packed.
///
/// ```
/// use rakwire::codec::rabbit::unpack;
/// use snowfight::message::{Event, EventKind, GameOver, ServerMessage};
///
/// let lost = Event { time: 7, kind: EventKind::GameOver(GameOver::Loser) };
/// assert_eq!(unpack(&[0x38, 0x08]), Ok(ServerMessage::Event(lost)));
/// ```
#[derive(Clone, Debug, PartialEq, Pack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub enum ServerMessage<'a> {
    /// Something happened.
    Event(Event<'a>),
    /// A request is answered.
    Response(Response<'a>),
}

/// What happened, and when.
#[derive(Clone, Debug, PartialEq, Pack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Event<'a> {
    /// The tick: 60 a second from the start of the server; it wraps.
    pub time: u32,
    /// What happened.
    pub kind: EventKind<'a>,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Pack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub enum EventKind<'a> {
    /// A tick has passed.
    Snapshot(Snapshot<'a>),
    /// The game of this client is over.
    GameOver(GameOver),
}

/// How a game ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Pack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub enum GameOver {
    /// It lost.
    Loser,
    /// It won.
    Winner,
}

/// Everything in the world: players, then objects, then what is dead.
#[derive(Clone, Debug, Default, PartialEq, Pack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Snapshot<'a> {
    /// Every entity.
    #[cfg_attr(feature = "serde", serde(serialize_with = "super::serialize::list"))]
    pub entities: List<'a, Entity>,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Pack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Response<'a> {
    /// What the request was called.
    pub channel: Channel,
    /// What is answered.
    pub kind: ResponseKind<'a>,
}

/// What is answered.
#[derive(Clone, Debug, PartialEq, Pack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub enum ResponseKind<'a> {
    /// No, and why.
    Error(#[cfg_attr(feature = "serde", serde(serialize_with = "super::serialize::text"))] Text<'a>),
    /// To a ping.
    Pong,
    /// The client is in the game.
    Connect(Connect<'a>),
}

/// What a client needs to know when it joins.
#[derive(Clone, Debug, PartialEq, Pack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Connect<'a> {
    /// Who it is.
    pub player: PlayerId,
    /// The world with its player in it.
    pub snapshot: Snapshot<'a>,
}
