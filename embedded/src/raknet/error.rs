//! Why a peer does not do what is asked of it.

use rakwire::raknet;

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
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum ConnectError {
    /// It was not even tried: there is no room, or such a connection exists.
    NotTried(#[cfg_attr(feature = "defmt", defmt(Display2Format))] raknet::ConnectError),
    /// It was tried in vain.
    Failed(#[cfg_attr(feature = "defmt", defmt(Display2Format))] raknet::ConnectFailure),
}

impl core::fmt::Display for ConnectError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::NotTried(error) => error.fmt(f),
            Self::Failed(failure) => failure.fmt(f),
        }
    }
}

impl core::error::Error for ConnectError {}

/// Why nobody answered a ping.
///
/// ```
/// assert_eq!(rakwire_embassy::raknet::PingError::NoAnswer.to_string(), "no answer came in time");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum PingError {
    /// Eight pings wait for their answers already.
    TooMany,
    /// No answer came in time.
    NoAnswer,
}

impl core::fmt::Display for PingError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::TooMany => "too many pings wait for their answers",
            Self::NoAnswer => "no answer came in time",
        })
    }
}

impl core::error::Error for PingError {}
