//! Addresses of clients in logs: as they are, or hashed.

use std::fmt;
use std::hash::Hasher;
use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;
use siphasher::sip::SipHasher24;

/// How the addresses of clients are logged.
#[derive(Clone)]
pub(crate) enum AddressLog {
    Plain,
    Hashed([u8; 16]),
    /// Not at all: the system gave no key.
    Hidden,
}

impl AddressLog {
    /// With `hashed`, an address is logged as a number that is the same until the relay ends, so that the lines of one
    /// client can be found. Without the key, which nobody gets to see, it cannot be found by trying all addresses.
    pub(crate) fn new(hashed: bool) -> Self {
        if !hashed {
            return Self::Plain;
        }
        let mut key = [0; 16];
        if getrandom::fill(&mut key).is_ok() { Self::Hashed(key) } else { Self::Hidden }
    }

    /// A network for a line of the log.
    pub(crate) fn show_network(&self, network: IpNet) -> String {
        match self {
            Self::Plain => network.to_string(),
            // The hash of a network could be found by trying all of them.
            Self::Hashed(_) | Self::Hidden => "hidden".to_owned(),
        }
    }

    /// The address for a line of the log.
    pub(crate) const fn show(&self, address: SocketAddr) -> Shown<'_> {
        Shown { address, log: self }
    }
}

impl fmt::Debug for AddressLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plain => "Plain",
            // Without the key.
            Self::Hashed(_) => "Hashed",
            Self::Hidden => "Hidden",
        })
    }
}

/// An address in a log.
pub(crate) struct Shown<'l> {
    address: SocketAddr,
    log: &'l AddressLog,
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = match self.log {
            AddressLog::Plain => return write!(f, "{}", self.address),
            AddressLog::Hashed(key) => key,
            AddressLog::Hidden => return f.write_str("hidden"),
        };
        let mut hasher = SipHasher24::new_with_key(key);
        match self.address.ip().to_canonical() {
            IpAddr::V4(ip) => hasher.write(&ip.octets()),
            IpAddr::V6(ip) => hasher.write(&ip.octets()),
        }
        write!(f, "hash:{:016x}", hasher.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(log: &AddressLog, address: &str) -> String {
        log.show(address.parse().unwrap()).to_string()
    }

    #[test]
    fn a_hash_names_the_client_and_not_its_address() {
        let log = AddressLog::new(true);
        let first = shown(&log, "192.0.2.1:5000");
        assert!(first.starts_with("hash:") && !first.contains("192"), "{first}");
        assert_eq!(shown(&log, "192.0.2.1:6000"), first, "another connection of the same client");
        assert_eq!(shown(&log, "[::ffff:192.0.2.1]:6000"), first);
        assert_ne!(shown(&log, "192.0.2.2:5000"), first);
        assert_ne!(shown(&AddressLog::new(true), "192.0.2.1:5000"), first, "another key");
        assert_eq!(format!("{log:?}"), "Hashed", "the key is not printed");
    }

    #[test]
    fn without_the_switch_addresses_are_logged() {
        let log = AddressLog::new(false);
        assert_eq!(shown(&log, "[2001:db8::1]:7"), "[2001:db8::1]:7");
    }
}
