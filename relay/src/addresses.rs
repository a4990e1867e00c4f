//! Names and addresses in the configuration: names of targets, addresses of game servers, and addresses to listen on.
//!
//! A relay gives its clients access to its own network. Addresses that no game server can have, and metadata services
//! that hand out machine credentials, are refused regardless of the configuration. Addresses of a private network must
//! be permitted by the configuration.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;
use tokio::time::timeout;

use crate::syntax;

/// The name by which clients request a game server: 1 to 64 bytes without `=` and control characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct TargetName(String);

impl TargetName {
    const LEN_MAX: usize = 64;

    /// Returns the name as text.
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
    /// Returns the text to resolve.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the host without brackets.
    fn host(&self) -> &str {
        let host = self.0.rsplit_once(':').map_or(self.0.as_str(), |(host, _)| host);
        host.trim_start_matches('[').trim_end_matches(']')
    }

    /// Returns true if the host is an IP address, which needs no resolution.
    pub(crate) fn is_numeric(&self) -> bool {
        let host = self.host();
        let address = host.split_once('%').map_or(host, |(address, _interface)| address);
        address.parse::<IpAddr>().is_ok()
    }

    /// Returns true for `localhost` and the names below it, which mean this machine (RFC 6761 section 6.3).
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
    /// The name for clients.
    pub name: TargetName,
    /// The address of the game server.
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
    /// The name is missing or unusable.
    #[error("put a name of 1 to 64 bytes and '=' before the address, as in game=127.0.0.1:19132")]
    Name,
    /// The host is missing or unusable.
    #[error("write the address as HOST:PORT, as in game=127.0.0.1:19132 or game=[::1]:19132")]
    Address,
    /// The port is not a number from 1 to 65535.
    #[error("end the address with a port from 1 to 65535, as in game=127.0.0.1:19132")]
    Port,
}

/// Converts IPv4-mapped addresses to IPv4, and clears the flow label.
pub(crate) fn canonical(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(_) => address,
        SocketAddr::V6(v6) => match v6.ip().to_ipv4_mapped() {
            Some(ip) => SocketAddr::new(ip.into(), v6.port()),
            None => SocketAddrV6::new(*v6.ip(), v6.port(), 0, v6.scope_id()).into(),
        },
    }
}

/// The class of an address as seen from the relay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum AddressClass {
    /// An address of any other machine.
    Public,
    /// An address of this machine or its network.
    Private,
    /// An address that no game server can have.
    Refused,
}

/// The reason why no address of a host can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AddressError {
    /// The name resolves to no address.
    #[error("has no address: check the host name")]
    NotFound,
    /// The address is unspecified, broadcast, multicast, link-local or reserved, or that of a metadata service.
    #[error(
        "is not a unicast address that a game server can have (unspecified, multicast, broadcast, link-local and \
         cloud-metadata addresses are refused): use the address of the game server"
    )]
    Refused,
    /// A name resolves to a loopback or private address.
    #[error(
        "resolves to a loopback or private address: write the address as a number, or set allow_private of the target to true"
    )]
    Private,
    /// The address is outside of 127.0.0.0/8, which a pool with one source address per client requires.
    #[error(
        "is not in 127.0.0.0/8: source = loopback-pool is for a game server on this machine, so remove it or use \
         an address such as 127.0.0.1"
    )]
    NotLoopback,
}

/// Metadata services outside of link-local ranges, which hand out credentials of the machine to any local sender.
const METADATA_V4: [Ipv4Addr; 3] = [
    // Alibaba Cloud, Azure, Oracle Cloud.
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(168, 63, 129, 16),
    Ipv4Addr::new(192, 0, 0, 192),
];

/// Metadata services with IPv6: Amazon Web Services, Google Cloud, Scaleway.
const METADATA_V6: [Ipv6Addr; 3] = [
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42),
];

/// The link-local metadata address of OpenStack.
const METADATA_LINK_LOCAL: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0xa9fe, 0xa9fe);

/// Returns true for link-local addresses, which are allowed if the configuration names their interface.
pub(crate) const fn is_neighbour(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(_) => false,
        IpAddr::V6(ip) => ip.is_unicast_link_local() && ip.to_bits() != METADATA_LINK_LOCAL.to_bits(),
    }
}

/// Returns the class of an address, or of the IPv4 address embedded in it.
pub(crate) fn classify(ip: IpAddr) -> AddressClass {
    match ip {
        IpAddr::V4(ip) => classify_v4(ip),
        IpAddr::V6(ip) => embedded_v4(ip).map_or_else(
            || classify_v6(ip),
            |embedded| match embedded {
                Embedded::Address(ip) => classify_v4(ip),
                Embedded::Unknown => AddressClass::Refused,
            },
        ),
    }
}

fn classify_v4(ip: Ipv4Addr) -> AddressClass {
    let [a, b, _, _] = ip.octets();
    // RFC 1122 section 3.2.1.3 ("this network"), RFC 1112 section 4 (reserved, with the broadcast address).
    let refused = a == 0 || a >= 240 || ip.is_multicast() || ip.is_link_local() || METADATA_V4.contains(&ip);
    // RFC 6598 (shared with the provider), RFC 2544 (benchmarks).
    let shared = (a == 100 && b & 0xc0 == 64) || (a == 198 && b & 0xfe == 18);
    match () {
        () if refused => AddressClass::Refused,
        () if ip.is_loopback() || ip.is_private() || shared => AddressClass::Private,
        () => AddressClass::Public,
    }
}

fn classify_v6(ip: Ipv6Addr) -> AddressClass {
    let [first, ..] = ip.segments();
    // 100::/16 contains the discard-only prefix of RFC 6666 (100::/64); the rest of it is not assigned.
    let discard = first == 0x100;
    let refused = ip.is_unspecified()
        || ip.is_multicast()
        || ip.is_unicast_link_local()
        || discard
        || METADATA_V6.contains(&ip);
    // RFC 3879: site-local addresses are deprecated, but existing networks still route them.
    let site_local = first & 0xffc0 == 0xfec0;
    match () {
        () if refused => AddressClass::Refused,
        () if ip.is_loopback() || ip.is_unique_local() || site_local => AddressClass::Private,
        () => AddressClass::Public,
    }
}

/// The IPv4 address embedded in an IPv6 address.
enum Embedded {
    Address(Ipv4Addr),
    /// There is an embedded address, but its position depends on the network.
    Unknown,
}

fn embedded_v4(ip: Ipv6Addr) -> Option<Embedded> {
    let at = |index: usize| {
        let octets = ip.octets();
        let four = octets.get(index..index + 4).and_then(|four| <[u8; 4]>::try_from(four).ok());
        four.map_or(Embedded::Unknown, |four| Embedded::Address(four.into()))
    };
    match ip.segments() {
        // The unspecified and the loopback address are not IPv4-compatible addresses.
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => None,
        // RFC 4291 section 2.5.5: compatible and mapped; RFC 2765: translated.
        [0, 0, 0, 0, 0, 0 | 0xffff, ..] | [0, 0, 0, 0, 0xffff, 0, ..] => Some(at(12)),
        // RFC 6052: NAT64 with the well-known prefix.
        [0x64, 0xff9b, 0, 0, 0, 0, ..] => Some(at(12)),
        // RFC 8215: NAT64 with a local prefix; RFC 4380: Teredo.
        [0x64, 0xff9b, 1, ..] | [0x2001, 0, ..] => Some(Embedded::Unknown),
        // RFC 3056: 6to4.
        [0x2002, ..] => Some(at(2)),
        // RFC 5214: ISATAP, with interface identifier 0:5efe or 200:5efe followed by the address.
        [_, _, _, _, 0 | 0x200, 0x5efe, ..] => Some(at(12)),
        _ => None,
    }
}

/// The timeout of a name lookup.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(10);

/// A configured address to listen on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListenAddress {
    /// An IP address and a port.
    Address(SocketAddr),
    /// A name and a port; the relay listens on every address of the name.
    Name(ListenName),
}

/// A host name and a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenName {
    host: String,
    port: u16,
}

/// The text is neither an address nor a name with a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("write it as ADDRESS:PORT or NAME:PORT, as in 127.0.0.1:8080, [::1]:8080 or localhost:8080")]
pub struct ListenSyntaxError;

impl ListenName {
    pub(crate) fn host(&self) -> &str {
        &self.host
    }
}

impl ListenAddress {
    /// Returns the address, or `None` for a name that must be resolved.
    #[must_use]
    pub const fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Address(address) => Some(*address),
            Self::Name(_) => None,
        }
    }

    /// Resolves a name to all of its addresses, at least one, in the order of the resolver.
    pub(crate) async fn resolve(&self) -> io::Result<Vec<SocketAddr>> {
        let ListenName { host, port } = match self {
            Self::Address(address) => return Ok(vec![*address]),
            Self::Name(name) => name,
        };
        let timed_out = |_| io::Error::new(io::ErrorKind::TimedOut, "the name lookup timed out");
        let found = timeout(LOOKUP_TIMEOUT, tokio::net::lookup_host((host.as_str(), *port))).await;
        let mut addresses = Vec::new();
        for address in found.map_err(timed_out)??.map(canonical) {
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
        if addresses.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address"));
        }
        Ok(addresses)
    }
}

impl From<SocketAddr> for ListenAddress {
    fn from(address: SocketAddr) -> Self {
        Self::Address(address)
    }
}

impl FromStr for ListenAddress {
    type Err = ListenSyntaxError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Ok(address) = syntax::socket_address(text) {
            return Ok(Self::Address(address));
        }
        let (host, port) = text.rsplit_once(':').ok_or(ListenSyntaxError)?;
        let is_label = |label: &str| {
            !label.is_empty() && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
        };
        // The last label of a name is not numeric: `127.0.0.1.` and `1:80` are mistyped addresses (RFC 3696 section 2).
        let last = host.rsplit('.').next().unwrap_or(host);
        let is_number = last.chars().all(|c| c.is_ascii_digit());
        match port.parse() {
            Ok(port) if host.split('.').all(is_label) && !is_number => {
                Ok(Self::Name(ListenName { host: host.to_owned(), port }))
            }
            _ => Err(ListenSyntaxError),
        }
    }
}

impl fmt::Display for ListenName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Name(name) => name.fmt(f),
        }
    }
}

impl Serialize for ListenAddress {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ListenAddress {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        syntax::from_text(deserializer)
    }
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

    fn class(text: &str) -> AddressClass {
        classify(text.parse().unwrap())
    }

    #[test]
    fn addresses_impossible_for_game_servers_are_refused() {
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "169.254.0.1",
            "169.254.169.254",
            "100.100.100.200",
            "168.63.129.16",
            "192.0.0.192",
            "::",
            "ff02::1",
            "ff0e::1",
            "fe80::1",
            "febf::1",
            "100::1",
            "fd00:ec2::254",
            "fd20:ce::254",
            "fd00:42::42",
        ] {
            assert_eq!(class(address), AddressClass::Refused, "{address}");
        }
    }

    #[test]
    fn local_networks_are_classified_as_private() {
        for address in [
            "127.0.0.1",
            "127.255.0.9",
            "10.0.0.1",
            "172.16.0.1",
            "172.31.255.1",
            "192.168.1.1",
            "100.64.0.1",
            "198.18.0.1",
            "::1",
            "fc00::1",
            "fd12:3456::1",
            "fec0::1",
        ] {
            assert_eq!(class(address), AddressClass::Private, "{address}");
        }
    }

    #[test]
    fn addresses_outside_private_ranges_are_classified_as_public() {
        for address in ["1.1.1.1", "172.32.0.1", "100.128.0.1", "198.20.0.1", "2606:4700::1111", "2a00::1"] {
            assert_eq!(class(address), AddressClass::Public, "{address}");
        }
    }

    #[test]
    fn embedded_ipv4_addresses_are_classified() {
        for form in [
            "::ffff:{}",
            "::{}",
            "::ffff:0:{}",
            "64:ff9b::{}",
            "fe90::5efe:{}",
            "2a00::5efe:{}",
            "2a00::200:5efe:{}",
        ] {
            assert_eq!(class(&form.replace("{}", "169.254.169.254")), AddressClass::Refused, "{form}");
            assert_ne!(class(&form.replace("{}", "127.0.0.1")), AddressClass::Public, "{form}");
            assert_ne!(class(&form.replace("{}", "10.1.2.3")), AddressClass::Public, "{form}");
        }
        assert_eq!(class("::ffff:1.1.1.1"), AddressClass::Public);
        assert_eq!(class("64:ff9b::1.1.1.1"), AddressClass::Public);
        // 6to4 of 169.254.169.254, 127.0.0.1 and 1.1.1.1.
        assert_eq!(class("2002:a9fe:a9fe::1"), AddressClass::Refused);
        assert_eq!(class("2002:7f00:1::1"), AddressClass::Private);
        assert_eq!(class("2002:101:101::1"), AddressClass::Public);
        assert_eq!(class("64:ff9b:1::7f00:1"), AddressClass::Refused);
        assert_eq!(class("2001::1"), AddressClass::Refused, "Teredo");
    }

    /// The loopback interface has index 1 on every system.
    #[cfg(target_os = "linux")]
    #[test]
    fn link_local_addresses_may_name_their_interface() {
        let listen: ListenAddress = "[fe80::1%lo]:8080".parse().unwrap();
        assert_eq!(listen.address(), Some("[fe80::1%1]:8080".parse().unwrap()));
        for text in ["[fe80::1%nothing0]:8080", "[name:x%lo]:8080", "[fe80::1%]:8080"] {
            assert!(text.parse::<ListenAddress>().is_err(), "{text}");
        }
    }

    #[test]
    fn addresses_and_names_are_distinguished() {
        for text in ["127.0.0.1:8080", "[::1]:0", "0.0.0.0:80"] {
            let listen: ListenAddress = text.parse().unwrap();
            assert_eq!(listen.address(), Some(text.parse().unwrap()), "{text}");
        }
        for text in ["localhost:8080", "relay-1.example.org:0", "7up.example:1"] {
            let listen: ListenAddress = text.parse().unwrap();
            assert_eq!((listen.address(), listen.to_string()), (None, text.to_owned()), "{text}");
        }
        for text in [
            "",
            "localhost",
            ":8080",
            "localhost:",
            "localhost:65536",
            "localhost:http",
            "::1:8080",
            "127.0.0.1",
            "127.0.0.256:80",
            "127.0.0.1.:80",
            "a..b:80",
            "a b:80",
            "http://localhost:80",
        ] {
            assert_eq!(text.parse::<ListenAddress>(), Err(ListenSyntaxError), "{text:?}");
        }
    }

    #[tokio::test]
    async fn a_name_resolves_to_its_addresses_without_duplicates() {
        let listen: ListenAddress = "localhost:9".parse().unwrap();
        let found = listen.resolve().await.unwrap();
        assert!(found.iter().all(|address| address.ip().is_loopback() && address.port() == 9), "{found:?}");
        let mut once = found.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), found.len());
    }
}
