//! The game servers that the relay offers, by name.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use thiserror::Error;

use crate::flow::Source;

/// The name of a game server for clients.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
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

/// The unresolved address of a game server: a host name or address, and a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPort(String);

impl HostPort {
    /// The text to resolve.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
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
    /// From which address the datagrams of a client come.
    pub source: Source,
    /// Whether the first datagrams of a client carry its address in a header of the PROXY protocol, version 2.
    pub proxy_protocol: bool,
}

impl FromStr for TargetSpec {
    type Err = TargetSyntaxError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, address) = text.split_once('=').ok_or(TargetSyntaxError::Name)?;
        Ok(Self {
            name: name.parse()?,
            address: address.parse()?,
            source: Source::default(),
            proxy_protocol: false,
        })
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

/// The way to a target.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Route {
    /// Its address.
    pub(crate) address: SocketAddr,
    pub(crate) source: Source,
    pub(crate) proxy_protocol: bool,
}

/// The targets with their addresses, resolved once.
#[derive(Debug, Clone, Default)]
pub(crate) struct Targets(BTreeMap<TargetName, Route>);

impl Targets {
    pub(crate) fn insert(&mut self, name: TargetName, route: Route) {
        self.0.insert(name, route);
    }

    /// The target that a client requested.
    pub(crate) fn find(&self, requested: &str) -> Option<(&TargetName, &Route)> {
        // An invalid name cannot be configured.
        let name = requested.parse().ok()?;
        self.0.get_key_value(&name)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &TargetName> {
        self.0.keys()
    }
}

/// The address to use, of those that a name resolves to: the first unicast one.
pub(crate) fn first_usable(addresses: impl Iterator<Item = SocketAddr>) -> Option<SocketAddr> {
    addresses
        // An IPv4-mapped IPv6 address needs an IPv4 socket.
        .map(|address| SocketAddr::new(address.ip().to_canonical(), address.port()))
        .find(|address| !is_special(address.ip()))
}

fn is_special(ip: IpAddr) -> bool {
    let broadcast = matches!(ip, IpAddr::V4(ip) if ip.is_broadcast());
    broadcast || ip.is_multicast() || ip.is_unspecified()
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

    #[test]
    fn special_addresses_are_skipped() {
        let pick = |list: &[&str]| first_usable(list.iter().map(|text| text.parse().unwrap()));
        assert_eq!(pick(&["0.0.0.0:1", "[::]:1", "224.0.0.1:1", "[ff02::1]:1", "255.255.255.255:1"]), None);
        assert_eq!(pick(&["[::ffff:0.0.0.0]:1", "127.0.0.1:2"]), "127.0.0.1:2".parse().ok());
        assert_eq!(pick(&["[::ffff:127.0.0.1]:3"]), "127.0.0.1:3".parse().ok());
    }
}
