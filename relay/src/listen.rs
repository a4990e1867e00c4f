//! Where a relay listens: an address, or a name with all of its addresses.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;
use tokio::time::timeout;

use crate::syntax;
use crate::target::canonical;

/// How long a lookup of the name may take.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(10);

/// Where to listen, as it is configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListenAddress {
    /// An address and a port.
    Address(SocketAddr),
    /// A name, of which every address is listened on, and a port.
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
    /// The name.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }
}

impl ListenAddress {
    /// The address, unless it is a name, which has to be resolved.
    #[must_use]
    pub const fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Address(address) => Some(*address),
            Self::Name(_) => None,
        }
    }

    /// Resolves a name to all of its addresses, of which there is at least one, in the order of the resolver.
    pub(crate) async fn resolve(&self) -> io::Result<Vec<SocketAddr>> {
        let ListenName { host, port } = match self {
            Self::Address(address) => return Ok(vec![*address]),
            Self::Name(name) => name,
        };
        let timed_out = |_| io::Error::new(io::ErrorKind::TimedOut, "the resolver does not answer");
        let found = timeout(LOOKUP_TIMEOUT, tokio::net::lookup_host((host.as_str(), *port))).await;
        let mut addresses = Vec::new();
        for address in found.map_err(timed_out)??.map(canonical) {
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
        if addresses.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "it has no address"));
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
        // The last label of a name is no number: `127.0.0.1.` and `1:80` are mistyped addresses (RFC 3696 section 2).
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

    /// The loopback interface is the first one everywhere.
    #[cfg(target_os = "linux")]
    #[test]
    fn an_address_may_have_the_name_of_its_interface() {
        let listen: ListenAddress = "[fe80::1%lo]:8080".parse().unwrap();
        assert_eq!(listen.address(), Some("[fe80::1%1]:8080".parse().unwrap()));
        for text in ["[fe80::1%nothing0]:8080", "[name:x%lo]:8080", "[fe80::1%]:8080"] {
            assert!(text.parse::<ListenAddress>().is_err(), "{text}");
        }
    }

    #[test]
    fn addresses_and_names_are_told_apart() {
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
    async fn a_name_has_all_of_its_addresses_once() {
        let listen: ListenAddress = "localhost:9".parse().unwrap();
        let found = listen.resolve().await.unwrap();
        assert!(found.iter().all(|address| address.ip().is_loopback() && address.port() == 9), "{found:?}");
        let mut once = found.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), found.len());
    }
}
