use super::{ClientMessage, EventKind, RequestKind, ResponseKind, ServerMessage};

/// The reliability of a message (docs/game.md#reliability).
///
/// ```
/// use snowfight::message::{Channel, ClientMessage, Delivery, Request, RequestKind};
///
/// let request = |kind| ClientMessage::Request(Request { channel: Channel(0), kind });
/// assert_eq!(request(RequestKind::Init).delivery(), Delivery::Reliable);
/// assert_eq!(request(RequestKind::Ping).delivery(), Delivery::Unreliable);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// Resent until it is acknowledged.
    Reliable,
    /// Sent once.
    Unreliable,
}

impl ClientMessage {
    /// Returns the reliability of the message.
    #[must_use]
    pub const fn delivery(&self) -> Delivery {
        match self {
            Self::Request(request) => match request.kind {
                RequestKind::Ping => Delivery::Unreliable,
                RequestKind::Init => Delivery::Reliable,
            },
            Self::Action(_) => Delivery::Reliable,
        }
    }
}

impl ServerMessage<'_> {
    /// Returns the reliability of the message.
    #[must_use]
    pub const fn delivery(&self) -> Delivery {
        match self {
            Self::Event(event) => match event.kind {
                EventKind::Snapshot(_) => Delivery::Unreliable,
                EventKind::GameOver(_) => Delivery::Reliable,
            },
            Self::Response(response) => match response.kind {
                ResponseKind::Pong => Delivery::Unreliable,
                ResponseKind::Error(_) | ResponseKind::Connect(_) => Delivery::Reliable,
            },
        }
    }
}
