//! The names and addresses of game servers as they are written.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize};
use thiserror::Error;

use crate::syntax;

/// The name of a game server for clients.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct TargetName(String);

impl TargetName {
    const LEN_MAX: usize = 64;

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for TargetName {
    type Err = TargetSyntaxError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty()
            || text.len() > Self::LEN_MAX
            || text.contains(|c: char| c == '=' || c.is_control())
        {
            return Err(TargetSyntaxError::Name);
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for TargetName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for TargetName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        syntax::from_text(deserializer)
    }
}

/// The unresolved address of a game server: a host name or address, and a port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostPort(String);

impl HostPort {
    /// The text to resolve.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The host without brackets.
    fn host(&self) -> &str {
        let host = self.0.rsplit_once(':').map_or(self.0.as_str(), |(host, _)| host);
        host.trim_start_matches('[').trim_end_matches(']')
    }

    /// Whether the host is a number and not a name, so that nothing has to be resolved.
    pub(crate) fn is_numeric(&self) -> bool {
        let host = self.host();
        let address = host.split_once('%').map_or(host, |(address, _interface)| address);
        address.parse::<IpAddr>().is_ok()
    }

    /// RFC 6761 section 6.3: `localhost` and the names below it are this machine.
    pub(crate) fn is_localhost(&self) -> bool {
        let host = self.host().trim_end_matches('.').to_ascii_lowercase();
        host == "localhost" || host.ends_with(".localhost")
    }
}

impl<'de> Deserialize<'de> for HostPort {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        syntax::from_text(deserializer)
    }
}

impl FromStr for HostPort {
    type Err = TargetSyntaxError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (host, port) = text.rsplit_once(':').ok_or(TargetSyntaxError::Address)?;
        let bracketed = host.starts_with('[') && host.ends_with(']');
        if host.is_empty() || (host.contains(':') && !bracketed) {
            return Err(TargetSyntaxError::Address);
        }
        match port.parse::<u16>() {
            Ok(1..) => Ok(Self(text.to_owned())),
            Ok(0) | Err(_) => Err(TargetSyntaxError::Port),
        }
    }
}

/// One `NAME=HOST:PORT` of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetSpec {
    /// Its name for clients.
    pub name: TargetName,
    /// Its address.
    pub address: HostPort,
}

impl FromStr for TargetSpec {
    type Err = TargetSyntaxError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, address) = text.split_once('=').ok_or(TargetSyntaxError::Name)?;
        Ok(Self { name: name.parse()?, address: address.parse()? })
    }
}

/// A syntax error in a `NAME=HOST:PORT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TargetSyntaxError {
    /// There is no usable name.
    #[error("put a name of 1 to 64 bytes and '=' before the address, as in game=127.0.0.1:19132")]
    Name,
    /// There is no usable host.
    #[error("write the address as HOST:PORT, as in game=127.0.0.1:19132 or game=[::1]:19132")]
    Address,
    /// The port is not a number from 1 to 65535.
    #[error("end the address in a port from 1 to 65535, as in game=127.0.0.1:19132")]
    Port,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_parsed() {
        let target: TargetSpec = "game=play.example.org:19132".parse().unwrap();
        assert_eq!(target.name.as_str(), "game");
        assert_eq!(target.address.as_str(), "play.example.org:19132");
        assert_eq!("v6=[::1]:1".parse::<TargetSpec>().unwrap().address.as_str(), "[::1]:1");
    }

    #[test]
    fn invalid_targets_are_rejected() {
        let cases = [
            ("", TargetSyntaxError::Name),
            ("game", TargetSyntaxError::Name),
            ("=127.0.0.1:1", TargetSyntaxError::Name),
            ("a\nb=127.0.0.1:1", TargetSyntaxError::Name),
            ("game=", TargetSyntaxError::Address),
            ("game=127.0.0.1", TargetSyntaxError::Address),
            ("game=:1", TargetSyntaxError::Address),
            ("game=::1:1", TargetSyntaxError::Address),
            ("game=127.0.0.1:", TargetSyntaxError::Port),
            ("game=127.0.0.1:0", TargetSyntaxError::Port),
            ("game=127.0.0.1:65536", TargetSyntaxError::Port),
        ];
        for (text, error) in cases {
            assert_eq!(text.parse::<TargetSpec>(), Err(error), "{text:?}");
        }
    }
}
