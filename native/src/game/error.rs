//! What can go wrong.

use std::io;

use rakwire::game_protocol::{self, ConnectFailure};

use crate::error::BindError;

/// Why a connection could not be opened.
///
/// ```
/// use rakwire_native::game::ConnectError;
///
/// assert_eq!(ConnectError::EndpointClosed.to_string(), "the endpoint is closed");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// This endpoint has a connection with that address already.
    #[error("a connection with this address exists already")]
    AlreadyConnected,
    /// Every connection that the endpoint has memory for is taken.
    #[error("every connection slot is taken")]
    Full,
    /// The socket is of another address family.
    #[error("an IPv4 socket cannot reach an IPv6 address")]
    AddressFamily,
    /// The endpoint was closed.
    #[error("the endpoint is closed")]
    EndpointClosed,
    /// The server said END at once: it is full.
    #[error("the server ended the connection at once; it may be full")]
    TurnedAway,
    /// The server did not answer, or the attempt was cancelled.
    #[error("{0}")]
    Failed(#[source] ConnectFailure),
}

impl From<game_protocol::ConnectError> for ConnectError {
    fn from(error: game_protocol::ConnectError) -> Self {
        match error {
            game_protocol::ConnectError::AlreadyConnected => Self::AlreadyConnected,
            // Whatever else the core may report one day is a lack of room, too.
            game_protocol::ConnectError::Full | _ => Self::Full,
        }
    }
}

/// Why [`connect`](super::connect) failed.
///
/// ```
/// use rakwire_native::game::{ConnectError, ConnectFailure, DialError};
///
/// let error = DialError::Connect(ConnectError::Failed(ConnectFailure::NoAnswer));
/// assert_eq!(error.to_string(), "the server does not answer");
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DialError {
    /// No socket could be bound to call from.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The connection could not be opened.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The system gives no random bytes for another attempt.
    #[error("the system gives no random bytes: {0}")]
    Random(#[source] io::Error),
}
