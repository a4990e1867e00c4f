//! Errors of pings and of messages to peers without a connection.

/// Why a ping had no pong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PingError {
    /// There was no pong in time.
    #[error("the server does not answer")]
    NoAnswer,
    /// The system or a router reports that nothing can be reached at the address
    /// ([`Options::hears_unreachable`](crate::endpoint::Options::hears_unreachable)).
    #[error("nothing listens at this address, or no route leads there")]
    Unreachable,
    /// Pings to eight other addresses are outstanding.
    #[error("too many pings wait for their pongs")]
    TooMany,
    /// The socket has another address family.
    #[error("an IPv4 socket cannot reach an IPv6 address")]
    AddressFamily,
    /// The endpoint is closed.
    #[error("the endpoint is closed")]
    EndpointClosed,
}

/// Why a message could not be sent to a peer without a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OutOfBandError {
    /// It is empty or too long.
    #[error("such a message has 1 to 399 bytes, an advertisement 0 to 398")]
    BadLength,
    /// The socket has another address family.
    #[error("an IPv4 socket cannot reach an IPv6 address")]
    AddressFamily,
    /// The endpoint is closed.
    #[error("the endpoint is closed")]
    EndpointClosed,
}
