//! Reading of configured values whose own parsers do not say what to write.

use std::fmt;
use std::marker::PhantomData;
use std::net::{AddrParseError, IpAddr, Ipv6Addr, SocketAddr, ToSocketAddrs as _};
use std::str::FromStr;

use ipnet::IpNet;
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer};

/// Reads a value from text by its `FromStr`, whose error says what to write.
pub(crate) fn from_text<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: FromStr<Err: fmt::Display>,
    D: Deserializer<'de>,
{
    struct Text<T>(PhantomData<T>);

    impl<T: FromStr<Err: fmt::Display>> Visitor<'_> for Text<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a text")
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
            text.parse().map_err(E::custom)
        }
    }

    deserializer.deserialize_str(Text(PhantomData))
}

/// Reads an address and a port. That of a link-local address may have the name of its interface, `[fe80::1%eth0]:8080`, whose
/// number the system knows.
///
/// # Errors
/// Those of the standard library for text that is no address with a port, also for the name of an interface that is not there.
pub fn socket_address(text: &str) -> Result<SocketAddr, AddrParseError> {
    text.parse().or_else(|error| zoned_address(text).ok_or(error))
}

fn zoned_address(text: &str) -> Option<SocketAddr> {
    let host = rakwire::split_zoned_host(text)?;
    let (address, _) = host.0.split_once('%')?;
    // Anything else is a name to the resolver.
    address.parse::<Ipv6Addr>().ok()?;
    host.to_socket_addrs().ok()?.next()
}

/// Reads an optional [`socket_address`].
pub(crate) fn listen<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SocketAddr>, D::Error> {
    struct Text(SocketAddr);

    impl FromStr for Text {
        type Err = AddrParseError;

        fn from_str(text: &str) -> Result<Self, Self::Err> {
            socket_address(text).map(Self)
        }
    }

    from_text(deserializer).map(|Text(address)| Some(address))
}

/// Addresses and networks.
pub(crate) fn networks<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<IpNet>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    texts.iter().map(|text| network(text).map_err(D::Error::custom)).collect()
}

/// A network such as `192.0.2.0/24`, or one address.
pub(crate) fn network(text: &str) -> Result<IpNet, String> {
    let network = text.parse::<IpNet>().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
    let error = |_| {
        format!(
            "'{text}' is not an address or a network: write it as 192.0.2.1, 192.0.2.0/24 or 2001:db8::/32"
        )
    };
    network.map(|network| network.trunc()).map_err(error)
}
