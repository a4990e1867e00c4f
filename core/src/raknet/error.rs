//! Why a peer does not do what only RakNet's applications ask.

/// Why a ping cannot be sent.
///
/// ```
/// assert_eq!(rakwire::raknet::PingError::TooMany.to_string(), "too many pings wait for their pongs");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PingError {
    /// Too many pings wait for their pongs; give some up with [`Peer::forget_ping`](crate::endpoint::Peer::forget_ping).
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
    /// The advertisement has more than 399 bytes, with the length before it if there is one.
    AdvertisementTooLong,
    /// The password has more than 255 bytes.
    PasswordTooLong,
    /// There is no such connection, or nothing is left of it.
    NoConnection,
}

impl core::fmt::Display for SetError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::AdvertisementTooLong => {
                "an advertisement has at most 399 bytes with the length before it; shorten it"
            }
            Self::PasswordTooLong => "a password has at most 255 bytes; shorten it",
            Self::NoConnection => "nothing is left of this connection",
        })
    }
}

impl core::error::Error for SetError {}
