use rakwire::codec::rabbit::{Pack, Unpack};

use super::{Channel, Direction, EntityId, Point};

/// A message from the client. The variant index takes one bit (docs/game.md#messages).
///
/// ```
/// use rakwire::codec::rabbit::unpack;
/// use snowfight::message::{Channel, ClientMessage, Request, RequestKind};
///
/// let init = Request { channel: Channel(255), kind: RequestKind::Init };
/// assert_eq!(unpack(&[0xF8, 0x0F]), Ok(ClientMessage::Request(init)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Pack, Unpack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum ClientMessage {
    /// A request, which the server answers.
    Request(Request),
    /// An action of the player.
    Action(Action),
}

/// A request, which the server answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Pack, Unpack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Request {
    /// The number that the response repeats.
    pub channel: Channel,
    /// The kind of request.
    pub kind: RequestKind,
}

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Pack, Unpack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum RequestKind {
    /// Requests a pong.
    Ping,
    /// Requests to join the game.
    Init,
}

/// An action of the player.
#[derive(Clone, Copy, Debug, PartialEq, Pack, Unpack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(transparent))]
pub struct Action {
    /// The kind of action.
    pub kind: ActionKind,
}

/// The kind of an action.
#[derive(Clone, Copy, Debug, PartialEq, Pack, Unpack)]
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Pack, Unpack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Break {
    /// The entity to break; `None` to stop breaking.
    pub entity: Option<EntityId>,
}

/// Throws the held object.
#[derive(Clone, Copy, Debug, PartialEq, Pack, Unpack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Throw {
    /// The point at which it should land.
    pub target: Point,
}

/// Walks in a direction until the next `Move`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Pack, Unpack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Move {
    /// The direction.
    pub direction: Direction,
}
