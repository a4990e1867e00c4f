//! What can go wrong outside of connections.

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
