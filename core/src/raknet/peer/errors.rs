//! Why a peer does not do what its application asks.

/// Why a connection cannot be opened from here.
///
/// ```
/// assert_eq!(rakwire::raknet::ConnectError::Full.to_string(), "every connection slot is taken");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ConnectError {
    /// A connection with this address exists already.
    AlreadyConnected,
    /// Every connection slot is taken.
    Full,
    /// The password is longer than 255 bytes.
    PasswordTooLong,
    /// There is no memory to keep the password until it is sent.
    NoMemory,
}

impl core::fmt::Display for ConnectError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::AlreadyConnected => "a connection with this address exists already",
            Self::Full => "every connection slot is taken",
            Self::PasswordTooLong => "a password has at most 255 bytes",
            Self::NoMemory => "there is no memory for the password",
        })
    }
}

impl core::error::Error for ConnectError {}

/// Why a ping cannot be sent.
///
/// ```
/// assert_eq!(rakwire::raknet::PingError::TooMany.to_string(), "too many pings wait for their pongs");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PingError {
    /// Too many pings wait for their pongs; give some up with [`Peer::forget_ping`](super::Peer::forget_ping).
    TooMany,
}

impl core::fmt::Display for PingError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("too many pings wait for their pongs")
    }
}

impl core::error::Error for PingError {}

/// Why an out-of-band message cannot be sent.
///
/// ```
/// use rakwire::raknet::OutOfBandError;
///
/// assert_eq!(OutOfBandError::BadLength.to_string(), "an out-of-band message has 1 to 399 bytes");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OutOfBandError {
    /// It has no bytes, or more than 399.
    BadLength,
    /// Eight such messages wait to be sent, or there is no memory for another.
    TooMany,
}

impl core::fmt::Display for OutOfBandError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::BadLength => "an out-of-band message has 1 to 399 bytes",
            Self::TooMany => "too many out-of-band messages wait; try again later",
        })
    }
}

impl core::error::Error for OutOfBandError {}

/// Why a peer does not take a setting; nothing changed then.
///
/// ```
/// use rakwire::raknet::{Config, Peer, Resources, SetError};
///
/// let mut memory = Resources::<1, 8, 64>::new();
/// let mut peer = Peer::new(&mut memory, Config::new([7; 32]));
/// assert_eq!(peer.set_advertisement(&[0; 400]), Err(SetError::AdvertisementTooLong));
/// assert_eq!(peer.set_password(b"secret"), Ok(()));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SetError {
    /// The advertisement has more than 399 bytes.
    AdvertisementTooLong,
    /// The password has more than 255 bytes.
    PasswordTooLong,
    /// There is no such connection, or nothing is left of it.
    NoConnection,
}

impl core::fmt::Display for SetError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::AdvertisementTooLong => "an advertisement has at most 399 bytes; shorten it",
            Self::PasswordTooLong => "a password has at most 255 bytes; shorten it",
            Self::NoConnection => "nothing is left of this connection",
        })
    }
}

impl core::error::Error for SetError {}
