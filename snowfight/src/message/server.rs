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
///
/// ```
/// use snowfight::message::{Event, EventKind, GameOver};
///
/// assert_eq!(Event { time: 60, kind: EventKind::GameOver(GameOver::Winner) }.time, 60);
/// ```
#[derive(Clone, Debug, PartialEq, Pack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Event<'a> {
    /// The tick: 60 a second from the start of the server; it wraps.
    pub time: u32,
    /// What happened.
    pub kind: EventKind<'a>,
}

/// What happened.
///
/// ```
/// use snowfight::message::{EventKind, Snapshot};
///
/// assert_eq!(EventKind::Snapshot(Snapshot::default()), EventKind::Snapshot(Snapshot::default()));
/// ```
#[derive(Clone, Debug, PartialEq, Pack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub enum EventKind<'a> {
    /// A tick has passed.
    Snapshot(Snapshot<'a>),
    /// The game of this client is over.
    GameOver(GameOver),
}

/// How a game ended.
///
/// ```
/// assert_ne!(snowfight::message::GameOver::Loser, snowfight::message::GameOver::Winner);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Pack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub enum GameOver {
    /// It lost.
    Loser,
    /// It won.
    Winner,
}

/// Everything in the world: players, then objects, then what is dead.
///
/// ```
/// use rakwire::codec::rabbit::List;
/// use snowfight::message::{Entity, EntityId, EntityKind, Snapshot};
///
/// let entities = [Entity { id: EntityId(1), kind: EntityKind::Dead }];
/// assert_eq!(Snapshot { entities: List::new(&entities) }.entities.len(), 1);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Pack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Snapshot<'a> {
    /// Every entity.
    #[cfg_attr(feature = "serde", serde(serialize_with = "super::serialize::list"))]
    pub entities: List<'a, Entity>,
}

/// An answer.
///
/// ```
/// use snowfight::message::{Channel, Response, ResponseKind};
///
/// assert_eq!(Response { channel: Channel(3), kind: ResponseKind::Pong }.channel, Channel(3));
/// ```
#[derive(Clone, Debug, PartialEq, Pack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Response<'a> {
    /// What the request was called.
    pub channel: Channel,
    /// What is answered.
    pub kind: ResponseKind<'a>,
}

/// What is answered.
///
/// ```
/// use rakwire::codec::rabbit::Text;
/// use snowfight::message::ResponseKind;
///
/// assert_ne!(ResponseKind::Pong, ResponseKind::Error(Text::new("no")));
/// ```
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
///
/// ```
/// use snowfight::message::{Connect, PlayerId, Snapshot};
///
/// let connect = Connect { player: PlayerId(1), snapshot: Snapshot::default() };
/// assert!(connect.snapshot.entities.is_empty());
/// ```
#[derive(Clone, Debug, PartialEq, Pack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Connect<'a> {
    /// Who it is.
    pub player: PlayerId,
    /// The world with its player in it.
    pub snapshot: Snapshot<'a>,
}
