//! How a scenario can fail.

use rakwire::raknet::DisconnectReason;
use rakwire_embassy::raknet::{ConnectError, Connection};

/// Why a scenario failed.
#[derive(Clone, Copy, Debug, defmt::Format)]
pub(crate) enum Failure {
    /// The server was not joined.
    Join(ConnectError),
    /// The connection ended.
    Ended(#[defmt(Display2Format)] DisconnectReason),
    /// A message was not what it should have been.
    WrongContent(u32),
    /// The pool was never full.
    NeverFull,
    /// The telemetry client was not told what it should have been.
    NoSettings,
    /// There is no such scenario.
    Unknown,
    /// It took too long.
    TooLong,
}

impl Failure {
    pub(crate) fn ended(connection: &Connection<'_>) -> Self {
        Self::Ended(connection.closed_reason().unwrap_or(DisconnectReason::Local))
    }
}
