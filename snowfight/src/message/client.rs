use rakwire::codec::rabbit::Pack;

use super::{Channel, Direction, EntityId, Point};

/// A message of a client. The index has one bit (supplement 1, row 8).
///
/// ```
/// use rakwire::codec::rabbit::unpack;
/// use snowfight::message::{Channel, ClientMessage, Request, RequestKind};
///
/// let init = Request { channel: Channel(255), kind: RequestKind::Init };
/// assert_eq!(unpack(&[0xF8, 0x0F]), Ok(ClientMessage::Request(init)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Pack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum ClientMessage {
    /// A request, which has a response.
    Request(Request),
    /// An action of the player.
    Action(Action),
}

/// A request, which has a response.
///
/// ```
/// use snowfight::message::{Channel, Request, RequestKind};
///
/// assert_eq!(Request { channel: Channel(1), kind: RequestKind::Ping }.channel, Channel(1));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Pack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Request {
    /// The channel of the response.
    pub channel: Channel,
    /// The kind of request.
    pub kind: RequestKind,
}

/// The kind of a request.
///
/// ```
/// assert_ne!(snowfight::message::RequestKind::Ping, snowfight::message::RequestKind::Init);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Pack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum RequestKind {
    /// Requests a pong.
    Ping,
    /// Requests to join the game.
    Init,
}

/// An action of the player.
///
/// ```
/// use snowfight::message::{Action, ActionKind, Break};
///
/// assert_eq!(Action { kind: ActionKind::Break(Break { entity: None }) }.kind, ActionKind::Break(Break { entity: None }));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Pack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(transparent))]
pub struct Action {
    /// The kind of action.
    pub kind: ActionKind,
}

/// The kind of an action.
///
/// ```
/// use snowfight::message::{ActionKind, Direction, Move};
///
/// assert_eq!(ActionKind::Move(Move { direction: Direction::NONE }), ActionKind::Move(Move::default()));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Pack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum ActionKind {
    /// Starts or stops breaking something.
    Break(Break),
    /// Throws the held object.
    Throw(Throw),
    /// Walks or stops.
    Move(Move),
}

/// Starts to break an entity, or stops.
///
/// ```
/// use snowfight::message::{Break, EntityId};
///
/// assert_eq!(Break::default().entity, None);
/// assert_eq!(Break { entity: Some(EntityId(9)) }.entity, Some(EntityId(9)));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Pack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Break {
    /// The entity to break; `None` to stop.
    pub entity: Option<EntityId>,
}

/// Throws the held object.
///
/// ```
/// use snowfight::message::{Point, Throw};
///
/// assert_eq!(Throw { target: Point::new(1.0, 2.0, 0.0) }.target.y, 2.0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Pack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Throw {
    /// Where it should land.
    pub target: Point,
}

/// Walks in a direction until the next `Move`.
///
/// ```
/// use snowfight::message::{Direction, Move};
///
/// assert_eq!(Move::default().direction, Direction::NONE);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Pack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Move {
    /// The direction.
    pub direction: Direction,
}
