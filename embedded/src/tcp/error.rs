//! The reasons why connections over TCP could not be opened, or were closed.

use core::fmt;

/// The reason why a connection could not be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum ConnectError {
    /// The address has no port or no IP address, its family is not enabled, or there is no route to it.
    NoRoute,
    /// The server refuses connections.
    Refused,
    /// The server has not answered within 10 s.
    NoAnswer,
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoRoute => "there is no route to this address",
            Self::Refused => "the server refused the connection",
            Self::NoAnswer => "the server does not answer",
        })
    }
}

impl core::error::Error for ConnectError {}

/// The reason why no connection could be accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum AcceptError {
    /// Port 0 is not valid.
    InvalidPort,
    /// The connection was closed before it opened. Call `accept` again.
    Closed,
}

impl fmt::Display for AcceptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InvalidPort => "connections cannot be accepted on port 0",
            Self::Closed => "the connection was closed before it opened",
        })
    }
}

impl core::error::Error for AcceptError {}

/// The reason why a connection was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum DisconnectReason {
    /// This side closed the connection.
    Local,
    /// The remote closed the connection, between two messages.
    Remote,
    /// The remote reset the connection, closed it within a message, or was silent for 10 s.
    Lost,
    /// The remote announced a message that exceeds the memory.
    MessageTooLong,
}

impl fmt::Display for DisconnectReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Local => "closed by this application",
            Self::Remote => "closed by the peer",
            Self::Lost => "the connection was lost",
            Self::MessageTooLong => "the peer announced a message that exceeds the memory of the connection",
        })
    }
}
