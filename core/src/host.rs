//! Hosts: whom limits for each host count, and addresses of IPv6 with the name of an interface, as text.

use core::net::{IpAddr, Ipv6Addr};

/// The part of an IPv6 address that its host does not choose.
const PREFIX_V6: u128 = !(u64::MAX as u128);

/// The addresses that one host has at least: one of IPv4, or of IPv6 all with the same first 64 bits, the rest of which a host
/// chooses as it likes. What is limited for each host is counted by this.
///
/// ```
/// use rakwire::HostPrefix;
///
/// let of = |address: &str| address.parse().map(HostPrefix::of);
/// assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:0:0:2"));
/// assert_eq!(of("192.0.2.1"), of("::ffff:192.0.2.1"));
/// assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostPrefix(IpAddr);

impl HostPrefix {
    /// That of an address.
    #[must_use]
    pub const fn of(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V4(ip) => IpAddr::V4(ip),
            IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & PREFIX_V6)),
        })
    }
}

/// Splits `[address%interface]:port` into what stands in the brackets and the port; none for any other text. Link-local
/// addresses mean nothing without their interface (RFC 4007 section 11). Only the system knows the number of an interface: a
/// resolver takes the first part as the name of a host.
///
/// ```
/// assert_eq!(rakwire::split_zoned_host("[fe80::1%eth0]:19132"), Some(("fe80::1%eth0", 19_132)));
/// assert_eq!(rakwire::split_zoned_host("[fe80::1]:19132"), None);
/// ```
#[must_use]
pub fn split_zoned_host(text: &str) -> Option<(&str, u16)> {
    let (host, port) = text.strip_prefix('[')?.split_once("]:")?;
    let (address, interface) = host.split_once('%')?;
    let is_host = address.contains(':') && !interface.is_empty();
    is_host.then_some((host, port.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_with_an_interface_and_a_port_are_taken_apart() {
        assert_eq!(split_zoned_host("[fe80::1%2]:1"), Some(("fe80::1%2", 1)));
        for other in [
            "",
            "[",
            "[]:1",
            "[%]:1",
            "[fe80::1%]:1",
            "[%eth0]:1",
            "fe80::1%eth0",
            "[fe80::1%eth0]",
            "[fe80::1%eth0]:",
            "[fe80::1%eth0]:65536",
            "[fe80::1%eth0]:x",
            "192.0.2.1:1",
            "host:1",
        ] {
            assert_eq!(split_zoned_host(other), None, "{other}");
        }
    }
}
