//! What can go wrong.

use std::io;
use std::net::SocketAddr;

use rakwire::raknet::{self, ConnectFailure};

/// Why an endpoint could not be bound.
///
/// ```
/// use rakwire_native::{BindError, Endpoint, Options};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let first = Endpoint::bind("127.0.0.1:0", Options::client()?).await?;
/// let second = Endpoint::bind(first.local_addr(), Options::client()?).await;
/// assert!(matches!(second, Err(BindError::Socket { .. })));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// The name of the address means nothing, or nothing could be asked.
    #[error("the name cannot be resolved: {0}")]
    Resolve(#[source] io::Error),
    /// The name of the address stands for no address.
    #[error("the name has no address")]
    NoAddress,
    /// The system refuses the socket: the port is taken, or the address is not one of this machine.
    #[error("cannot listen on {address}: {source}")]
    Socket {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
}

/// Why a connection could not be opened.
///
/// ```
/// use rakwire_native::ConnectError;
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
    /// The password is longer than 255 bytes.
    #[error("a password has at most 255 bytes")]
    PasswordTooLong,
    /// The endpoint was closed.
    #[error("the endpoint is closed")]
    EndpointClosed,
    /// The attempt failed.
    #[error(transparent)]
    Failed(#[from] ConnectFailure),
}

impl From<raknet::ConnectError> for ConnectError {
    fn from(error: raknet::ConnectError) -> Self {
        match error {
            raknet::ConnectError::AlreadyConnected => Self::AlreadyConnected,
            raknet::ConnectError::PasswordTooLong => Self::PasswordTooLong,
            // Whatever else the core may report one day is a want of room, too.
            raknet::ConnectError::Full | _ => Self::Full,
        }
    }
}

/// Why a ping brought no pong.
///
/// ```
/// use rakwire_native::PingError;
///
/// assert_eq!(PingError::NoAnswer.to_string(), "the server does not answer");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PingError {
    /// Nothing came back in time.
    #[error("the server does not answer")]
    NoAnswer,
    /// Eight other addresses are being pinged.
    #[error("too many pings wait for their pongs")]
    TooMany,
    /// The socket is of another address family.
    #[error("an IPv4 socket cannot reach an IPv6 address")]
    AddressFamily,
    /// The endpoint was closed.
    #[error("the endpoint is closed")]
    EndpointClosed,
}

/// Why a message could not be sent to a peer without a connection.
///
/// ```
/// use rakwire_native::OutOfBandError;
///
/// assert_eq!(OutOfBandError::BadLength.to_string(), "such a message has 1 to 399 bytes, an advertisement 0 to 398");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OutOfBandError {
    /// It is empty or too long.
    #[error("such a message has 1 to 399 bytes, an advertisement 0 to 398")]
    BadLength,
    /// The socket is of another address family.
    #[error("an IPv4 socket cannot reach an IPv6 address")]
    AddressFamily,
    /// The endpoint was closed.
    #[error("the endpoint is closed")]
    EndpointClosed,
}
