//! Why a peer does not do what is asked of it.

use rakwire::game_protocol;

/// Why a connection was not opened.
///
/// ```
/// use rakwire::game_protocol::ConnectFailure;
/// use rakwire_embassy::game::ConnectError;
///
/// let error = ConnectError::Failed(ConnectFailure::NoAnswer);
/// assert_eq!(error.to_string(), "the server does not answer");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum ConnectError {
    /// It was not even tried: there is no room, or such a connection exists.
    NotTried(#[cfg_attr(feature = "defmt", defmt(Display2Format))] game_protocol::ConnectError),
    /// It was tried in vain.
    Failed(#[cfg_attr(feature = "defmt", defmt(Display2Format))] game_protocol::ConnectFailure),
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
