//! The outcome of one message to many connections.

use rakwire::endpoint::{ConnectionId, SendError};

/// The connections that a message was sent to, and those that did not take it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Broadcast {
    /// How many connections the message was sent to.
    pub sent: usize,
    /// The connections that did not take it, most often because they have no room ([`SendError::QuotaExceeded`]).
    pub refused: Vec<(ConnectionId, SendError)>,
}
