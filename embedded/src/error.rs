//! Why a connection was not opened.

use rakwire::endpoint::{self, Protocol};

/// Why a connection was not opened.
///
/// ```
/// use rakwire::raknet::ConnectFailure;
/// use rakwire_embassy::raknet::ConnectError;
///
/// let error = ConnectError::Failed(ConnectFailure::NoAnswer);
/// assert_eq!(error.to_string(), "the server does not answer");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectError<P: Protocol> {
    /// It was not even tried: there is no room, or such a connection exists.
    NotTried(endpoint::ConnectError),
    /// It was tried in vain.
    Failed(P::ConnectFailure),
}

impl<P: Protocol> core::fmt::Display for ConnectError<P> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::NotTried(error) => error.fmt(f),
            Self::Failed(failure) => failure.fmt(f),
        }
    }
}

impl<P: Protocol> core::error::Error for ConnectError<P> {}

// Derived, it would ask for a format of the protocol.
#[cfg(feature = "defmt")]
impl<P: Protocol> defmt::Format for ConnectError<P> {
    fn format(&self, f: defmt::Formatter<'_>) {
        match self {
            Self::NotTried(error) => defmt::write!(f, "NotTried({})", defmt::Display2Format(error)),
            Self::Failed(failure) => defmt::write!(f, "Failed({})", defmt::Display2Format(failure)),
        }
    }
}
