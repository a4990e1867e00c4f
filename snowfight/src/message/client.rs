use rakwire::codec::rabbit::Pack;

use super::{Channel, Direction, EntityId, Point};

/// What a client says. The index has one bit (docs/game.md#messages).
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
    /// It wants a response.
    Request(Request),
    /// It does something.
    Action(Action),
}

/// A request, which has a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Pack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Request {
    /// What the response shall be called.
    pub channel: Channel,
    /// What is wanted.
    pub kind: RequestKind,
}

/// What a client wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Pack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum RequestKind {
    /// A pong.
    Ping,
    /// To join the game.
    Init,
}

/// Something that a client does.
#[derive(Clone, Copy, Debug, PartialEq, Pack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(transparent))]
pub struct Action {
    /// What it does.
    pub kind: ActionKind,
}

/// What a client does.
#[derive(Clone, Copy, Debug, PartialEq, Pack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum ActionKind {
    /// It begins or ends to break something.
    Break(Break),
    /// It throws what it holds.
    Throw(Throw),
    /// It walks, or stands.
    Move(Move),
}

/// Break something, or nothing any more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Pack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Break {
    /// What to break.
    pub entity: Option<EntityId>,
}

/// Throw what is held.
#[derive(Clone, Copy, Debug, PartialEq, Pack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Throw {
    /// Where it shall come down.
    pub target: Point,
}

/// Walk in a direction until told otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Pack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Move {
    /// Where to.
    pub direction: Direction,
}
