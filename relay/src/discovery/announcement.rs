//! The announcement of a game server in the store.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::addresses::{HostPort, TargetName};
use crate::protocol::ProtocolKind;

/// The key prefix of announcements.
pub(super) const PREFIX: &str = "rakwire:server:";

/// The maximum length of a value in bytes.
pub(super) const LONGEST: usize = 1_024;

/// The announcement of a game server.
///
/// ```
/// use rakwire_relay::discovery::Announcement;
/// use rakwire_relay::protocol::ProtocolKind;
///
/// let text = r#"{"address":"10.0.0.7:19132","kind":"raknet"}"#;
/// let server = Announcement::parse("arena-3".parse()?, text)?;
/// assert_eq!(server.kind, ProtocolKind::RakNet);
/// assert_eq!((server.key(), server.value()), ("rakwire:server:arena-3".to_owned(), text.to_owned()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announcement {
    /// The name by which clients request the server.
    pub name: TargetName,
    /// The address, as reachable from the relays.
    pub address: HostPort,
    /// The protocol of the server.
    pub kind: ProtocolKind,
}

/// The value of a key. Unknown fields are ignored, for compatibility with later versions.
#[derive(Serialize, Deserialize)]
struct Value<'a> {
    address: &'a str,
    #[serde(default)]
    kind: ProtocolKind,
}

impl Announcement {
    /// Parses the value of the key for `name`.
    ///
    /// # Errors
    /// If it is not a JSON object with an address, or longer than 1,024 bytes.
    pub fn parse(name: TargetName, value: &str) -> Result<Self, AnnouncementError> {
        if value.len() > LONGEST {
            return Err(AnnouncementError::TooLong);
        }
        let Value { address, kind } = serde_json::from_str(value).map_err(|_| AnnouncementError::Syntax)?;
        let address = address.parse().map_err(|_| AnnouncementError::Address)?;
        Ok(Self { name, address, kind })
    }

    /// Returns the key in the store.
    #[must_use]
    pub fn key(&self) -> String {
        format!("{PREFIX}{}", self.name)
    }

    /// Returns the JSON text to store under [`key`](Self::key).
    #[must_use]
    pub fn value(&self) -> String {
        let value = Value { address: self.address.as_str(), kind: self.kind };
        // Two strings always serialize.
        serde_json::to_string(&value).unwrap_or_default()
    }
}

/// Returns the name in a key, if the key is that of an announcement.
pub(super) fn name_of(key: &[u8]) -> Option<TargetName> {
    str::from_utf8(key).ok()?.strip_prefix(PREFIX)?.parse().ok()
}

/// The reason why an announcement is unusable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AnnouncementError {
    /// The value is not a JSON object with an address.
    #[error("it must be a JSON object such as {{\"address\":\"10.0.0.7:19132\",\"kind\":\"raknet\"}}")]
    Syntax,
    /// The address is malformed.
    #[error("its address must be HOST:PORT")]
    Address,
    /// The value is longer than 1,024 bytes.
    #[error("it must not be longer than 1024 bytes")]
    TooLong,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(value: &str) -> Result<Announcement, AnnouncementError> {
        Announcement::parse("arena".parse().unwrap(), value)
    }

    #[test]
    fn announcements_round_trip_and_the_default_protocol_is_raw() {
        for kind in ProtocolKind::ALL {
            let server = Announcement {
                name: "arena".parse().unwrap(),
                address: "[2001:db8::1]:19132".parse().unwrap(),
                kind,
            };
            assert_eq!(parse(&server.value()), Ok(server));
        }
        let least = parse(r#"{"address":"a.example:1","later":[1]}"#).unwrap();
        assert_eq!(least.kind, ProtocolKind::Raw);
    }

    #[test]
    fn unusable_announcements_have_a_reason() {
        assert_eq!(parse("10.0.0.7:19132"), Err(AnnouncementError::Syntax));
        assert_eq!(parse(r#"{"kind":"raknet"}"#), Err(AnnouncementError::Syntax));
        assert_eq!(parse(r#"{"address":"a:1","kind":"tcp"}"#), Err(AnnouncementError::Syntax));
        assert_eq!(parse(r#"{"address":"10.0.0.7"}"#), Err(AnnouncementError::Address));
        assert_eq!(parse(&" ".repeat(1_025)), Err(AnnouncementError::TooLong));
    }

    #[test]
    fn only_server_keys_with_a_valid_name_are_read() {
        assert_eq!(name_of(b"rakwire:server:a").map(|name| name.to_string()), Some("a".to_owned()));
        for key in ["rakwire:server:", "rakwire:server:a=b", "rakwire:servers:a", "a"] {
            assert_eq!(name_of(key.as_bytes()), None, "{key}");
        }
    }
}
