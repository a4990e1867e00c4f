//! The reasons why a scenario fails.

use rakwire::raknet::DisconnectReason;
use rakwire_embassy::raknet::{ConnectError, Connection};

/// The reason why a scenario failed.
#[derive(Clone, Copy, Debug, defmt::Format)]
pub(crate) enum Failure {
    /// Connecting failed.
    Join(ConnectError),
    /// The connection was closed.
    Ended(#[defmt(Display2Format)] DisconnectReason),
    /// A message has the wrong content.
    WrongContent(u32),
    /// The pool did not become full.
    NeverFull,
    /// The telemetry client did not receive its settings.
    NoSettings,
    /// The connection is not with the server that owns the configured key.
    #[cfg(feature = "secure")]
    NotSecure,
    /// There is no scenario with this name.
    Unknown,
    /// The scenario exceeded its time limit.
    TooLong,
}

impl Failure {
    pub(crate) fn ended(connection: &Connection<'_>) -> Self {
        Self::Ended(connection.closed_reason().unwrap_or(DisconnectReason::Local))
    }
}
