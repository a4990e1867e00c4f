//! Why a connection could not be opened, and why there is nothing to take now.

use rakwire::endpoint;

/// Why a connection could not be opened. `F` is the protocol's reason for a failed attempt.
///
/// ```
/// use rakwire_native::raknet::{ConnectError, ConnectFailure, Endpoint, Options, Refusal};
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = Endpoint::bind("127.0.0.1:0", Options::server(1)?).await?;
/// let client = Endpoint::bind("127.0.0.1:0", Options::client()?).await?;
/// let connection = client.connect(server.local_addr()).await?;
/// let second = client.connect(server.local_addr()).await;
/// assert_eq!(second.err(), Some(ConnectError::AlreadyConnected));
///
/// let other = Endpoint::bind("127.0.0.1:0", Options::client()?).await?;
/// let full = ConnectFailure::Refused(Refusal::NoFreeIncomingConnections);
/// assert_eq!(other.connect(server.local_addr()).await.err(), Some(ConnectError::Failed(full)));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError<F> {
    /// This endpoint already has a connection with the address.
    #[error("a connection with this address exists already")]
    AlreadyConnected,
    /// The endpoint has the maximum number of connections.
    #[error("every connection slot is taken")]
    Full,
    /// The socket has another address family.
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
    /// RakNet: a secure connection is wanted, and the options of the endpoint have no security.
    #[error("a secure connection needs an endpoint with security")]
    NoSecurity,
    /// RakNet: the client has an identity, which only a secure connection shows, and is not told which server to trust.
    #[error("an identity is for secure connections: say which server to trust, or leave it out")]
    IdentityWithoutTrust,
    /// RakNet: the data of an identity is longer than 95 bytes, or there is no identity to send it with.
    #[error("the data of an identity has at most 95 bytes, and needs an identity")]
    InvalidIdentityData,
    /// The endpoint is closed.
    #[error("the endpoint is closed")]
    EndpointClosed,
    /// The server closed the connection as soon as it was open. A full server of the Game Protocol does that.
    #[error("the server ended the connection at once; it may be full")]
    Disconnected,
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
            endpoint::ConnectError::NoSecurity => Self::NoSecurity,
            endpoint::ConnectError::IdentityWithoutTrust => Self::IdentityWithoutTrust,
            endpoint::ConnectError::InvalidIdentityData => Self::InvalidIdentityData,
            // The error is non-exhaustive; any other one is about missing room, too.
            endpoint::ConnectError::Full | endpoint::ConnectError::NoMemory | _ => Self::Full,
        }
    }
}

/// Why [`Connection::try_recv`](super::Connection::try_recv) returned no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TryRecvError {
    /// No message has arrived that was not received yet.
    #[error("no message is waiting")]
    Empty,
    /// The connection has ended and all messages have been received.
    #[error("the connection has ended")]
    Closed,
}

/// Why [`Endpoint::try_accept`](super::Endpoint::try_accept) returned no connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TryAcceptError {
    /// No connection is waiting to be accepted.
    #[error("no connection is waiting")]
    Empty,
    /// The endpoint is closed.
    #[error("the endpoint is closed")]
    Closed,
}
