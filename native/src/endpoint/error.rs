//! Why a connection could not be opened.

use rakwire::endpoint;

/// Why a connection could not be opened. `F` is what the protocol says of an attempt that failed.
///
/// ```
/// use rakwire_native::game_protocol::{ConnectError, ConnectFailure};
///
/// assert_eq!(ConnectError::EndpointClosed.to_string(), "the endpoint is closed");
/// assert_eq!(ConnectError::Failed(ConnectFailure::NoAnswer).to_string(), "the server does not answer");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError<F> {
    /// This endpoint has a connection with that address already.
    #[error("a connection with this address exists already")]
    AlreadyConnected,
    /// Every connection that the endpoint has memory for is taken.
    #[error("every connection slot is taken")]
    Full,
    /// The socket is of another address family.
    #[error("an IPv4 socket cannot reach an IPv6 address")]
    AddressFamily,
    /// The address is that of nobody: its port or its IP address is zero.
    #[error("an address to connect to has a port and an IP address other than zero")]
    UnassignedAddress,
    /// RakNet: the largest MTU of the configuration is not one of 576 to 1492 bytes.
    #[error("the largest MTU must be 576 to 1492 bytes")]
    InvalidMtu,
    /// RakNet: the password is longer than 255 bytes.
    #[error("a password has at most 255 bytes")]
    PasswordTooLong,
    /// The endpoint was closed.
    #[error("the endpoint is closed")]
    EndpointClosed,
    /// The connection was open for a moment, until the server ended it. In the Game Protocol a server does so that is
    /// full.
    #[error("the server ended the connection at once; it may be full")]
    TurnedAway,
    /// The attempt failed.
    #[error(transparent)]
    Failed(F),
}

impl<F> From<endpoint::ConnectError> for ConnectError<F> {
    fn from(error: endpoint::ConnectError) -> Self {
        match error {
            endpoint::ConnectError::AlreadyConnected => Self::AlreadyConnected,
            endpoint::ConnectError::UnassignedAddress => Self::UnassignedAddress,
            endpoint::ConnectError::InvalidMtu => Self::InvalidMtu,
            endpoint::ConnectError::PasswordTooLong => Self::PasswordTooLong,
            // Whatever else the core may report one day is a want of room, too.
            endpoint::ConnectError::Full | endpoint::ConnectError::NoMemory | _ => Self::Full,
        }
    }
}
