//! The syntax of configured values: parsers with errors that name the accepted values, and durations.

use std::fmt;
use std::marker::PhantomData;
use std::net::{AddrParseError, IpAddr, Ipv6Addr, SocketAddr, ToSocketAddrs as _};
use std::str::FromStr;

use ipnet::IpNet;
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer};

/// Parses a value with its `FromStr`; the error names the accepted values.
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

/// Parses an address and a port. A link-local address may name its interface, as in `[fe80::1%eth0]:8080`; the system
/// provides the interface's index.
///
/// # Errors
/// The standard library's error for any other text, including one with an unknown interface.
pub fn socket_address(text: &str) -> Result<SocketAddr, AddrParseError> {
    text.parse().or_else(|error| zoned_address(text).ok_or(error))
}

fn zoned_address(text: &str) -> Option<SocketAddr> {
    let host = rakwire::split_zoned_host(text)?;
    let (address, _) = host.0.split_once('%')?;
    // The resolver would treat any other text as a host name.
    address.parse::<Ipv6Addr>().ok()?;
    host.to_socket_addrs().ok()?.next()
}

/// Parses an optional [`socket_address`].
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

/// Parses addresses and networks.
pub(crate) fn networks<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<IpNet>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    texts.iter().map(|text| network(text).map_err(D::Error::custom)).collect()
}

/// Parses a network such as `192.0.2.0/24`, or a single address.
pub(crate) fn network(text: &str) -> Result<IpNet, String> {
    let network = text.parse::<IpNet>().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
    let error = |_| {
        format!(
            "'{text}' is not an address or a network: write it as 192.0.2.1, 192.0.2.0/24 or 2001:db8::/32"
        )
    };
    network.map(|network| network.trunc()).map_err(error)
}

/// Durations in text form: `250ms`, `1m 30s`, or a whole number of seconds.
pub(crate) mod duration {
    use std::fmt;
    use std::time::Duration;

    use serde::de::{Error, Visitor};
    use serde::{Deserializer, Serializer};

    /// The hint for a malformed duration.
    pub(crate) const SYNTAX: &str =
        "write a number of seconds, or a string with units, as in \"250ms\", \"60s\" or \"1h 30m\"";

    /// Parses a duration: a whole number of seconds, or numbers with units.
    ///
    /// # Errors
    ///
    /// A sentence that names the accepted values.
    pub fn parse(text: &str) -> Result<Duration, &'static str> {
        match text.parse() {
            Ok(seconds) => Ok(Duration::from_secs(seconds)),
            Err(_) => humantime::parse_duration(text).map_err(|_| SYNTAX),
        }
    }

    /// Formats a duration so that [`parse`] reads it back.
    pub(crate) fn text(duration: Duration) -> String {
        humantime::format_duration(duration).to_string()
    }

    pub(crate) fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&text(*duration))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        deserializer.deserialize_any(DurationVisitor)
    }

    struct DurationVisitor;

    impl Visitor<'_> for DurationVisitor {
        type Value = Duration;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a number of seconds or a string such as \"250ms\"")
        }

        fn visit_u64<E: Error>(self, seconds: u64) -> Result<Duration, E> {
            Ok(Duration::from_secs(seconds))
        }

        fn visit_i64<E: Error>(self, seconds: i64) -> Result<Duration, E> {
            u64::try_from(seconds).map(Duration::from_secs).map_err(|_| E::custom(SYNTAX))
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<Duration, E> {
            parse(text).map_err(E::custom)
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn durations_round_trip_as_text() {
            for millis in [0, 1, 250, 1000, 60_000, 90_000, 86_400_000, 86_461_001] {
                let duration = Duration::from_millis(millis);
                assert_eq!(parse(&text(duration)), Ok(duration), "{}", text(duration));
            }
            assert_eq!(parse("60"), Ok(Duration::from_secs(60)));
            for wrong in ["", "-1", "1.5", "a", "1 parsec", "99999999999999999999"] {
                assert_eq!(parse(wrong), Err(SYNTAX), "{wrong:?}");
            }
        }
    }
}
