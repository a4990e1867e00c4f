//! The protocols that the relay knows.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The protocol of a target.
///
/// ```
/// use rakwire_relay::protocol::ProtocolKind;
///
/// assert_eq!("game-protocol".parse(), Ok(ProtocolKind::GameProtocol));
/// assert_eq!(ProtocolKind::RakNet.to_string(), "raknet");
/// assert_eq!(ProtocolKind::default(), ProtocolKind::Raw);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ProtocolKind {
    /// RakNet: datagrams of a connection pass once the server has accepted one, pings are answered from a cache, and the
    /// MTU is clamped.
    #[serde(rename = "raknet")]
    RakNet,
    /// The Game Protocol: packets pass once the server has answered the handshake.
    #[serde(rename = "game-protocol")]
    GameProtocol,
    /// Any other: everything passes.
    #[default]
    #[serde(rename = "raw")]
    Raw,
}

impl ProtocolKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::RakNet, Self::GameProtocol, Self::Raw];

    /// Its name in a configuration: `raknet`, `game-protocol` or `raw`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RakNet => "raknet",
            Self::GameProtocol => "game-protocol",
            Self::Raw => "raw",
        }
    }
}

impl fmt::Display for ProtocolKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for ProtocolKind {
    type Err = ProtocolKindSyntaxError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text).ok_or(ProtocolKindSyntaxError)
    }
}

/// The text names no protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("write raknet, game-protocol or raw")]
pub struct ProtocolKindSyntaxError;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_and_written() {
        for kind in ProtocolKind::ALL {
            assert_eq!(kind.to_string().parse(), Ok(kind));
            assert_eq!(serde_json::to_value(kind).unwrap(), serde_json::json!(kind.as_str()));
        }
        assert_eq!("RakNet".parse::<ProtocolKind>(), Err(ProtocolKindSyntaxError));
    }
}
