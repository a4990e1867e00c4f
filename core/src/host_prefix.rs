//! Whom limits for each host count.

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
