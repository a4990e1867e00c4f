//! Client addresses, and the expected limits.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The address of the trusted proxy.
pub(super) const PROXY: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
/// The maximum number of clients per address.
pub(super) const PER_ADDRESS: u32 = 2;
/// The maximum number of clients per prefix (/24 or /56).
pub(super) const PER_PREFIX: u32 = 3;

/// Maps `number` to one of a few addresses. Some of the addresses share a network.
pub(super) fn address(number: u8) -> IpAddr {
    let v4 = |network: [u8; 3]| Ipv4Addr::new(network[0], network[1], network[2], number >> 4);
    match number & 7 {
        0 | 1 => v4([192, 0, 2]).into(),
        2 => v4([198, 51, 100]).to_ipv6_mapped().into(),
        3 => v4([203, 0, 113]).into(),
        4 => Ipv6Addr::new(0x2001, 0xDB8, 0, u16::from(number >> 6), 0, 0, 0, u16::from(number >> 4)).into(),
        5 => Ipv6Addr::new(0x2001, 0xDB8, 0xBAD, 0, 0, 0, 0, u16::from(number >> 4)).into(),
        6 => v4([127, 0, 0]).into(),
        _ => PROXY.into(),
    }
}

/// Returns true if the ban file `fuzz/admission/bans` contains an address.
pub(super) fn is_banned(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.octets().starts_with(&[203, 0, 113]),
        IpAddr::V6(ip) => ip.segments().starts_with(&[0x2001, 0xDB8, 0xBAD]),
    }
}

/// Returns true if an address is exempt from limits.
pub(super) fn is_exempt(ip: IpAddr) -> bool {
    ip.is_loopback()
}

/// Returns the prefix of an address: the first `v4` bits of an IPv4 address, or the first `v6` bits of an IPv6 address.
fn cut(ip: IpAddr, v4: u32, v6: u32) -> IpAddr {
    match ip {
        IpAddr::V4(ip) => Ipv4Addr::from_bits(ip.to_bits() >> (32 - v4) << (32 - v4)).into(),
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() >> (128 - v6) << (128 - v6)).into(),
    }
}

/// Returns the prefix that the relay counts as one address: an IPv4 address, or the /64 of an IPv6 address.
pub(super) fn host(ip: IpAddr) -> IpAddr {
    cut(ip, 32, 64)
}

/// The number of clients per address and per prefix.
pub(super) struct Shares {
    hosts: HashMap<IpAddr, u32>,
    prefixes: HashMap<IpAddr, u32>,
}

impl Shares {
    pub(super) fn of(addresses: impl Iterator<Item = IpAddr>) -> Self {
        let (mut hosts, mut prefixes) = (HashMap::new(), HashMap::new());
        for ip in addresses {
            *hosts.entry(host(ip)).or_default() += 1;
            *prefixes.entry(cut(ip, 24, 56)).or_default() += 1;
        }
        Self { hosts, prefixes }
    }

    /// Returns the number of counted addresses and prefixes.
    pub(super) fn len(&self) -> usize {
        self.hosts.len() + self.prefixes.len()
    }

    /// Returns true if an address or its prefix has reached its limit. `factor` multiplies the limits.
    pub(super) fn are_taken(&self, ip: IpAddr, factor: u32) -> bool {
        let of = |counts: &HashMap<IpAddr, u32>, network: IpAddr| {
            counts.get(&network).copied().unwrap_or_default()
        };
        of(&self.hosts, host(ip)) >= factor * PER_ADDRESS
            || of(&self.prefixes, cut(ip, 24, 56)) >= factor * PER_PREFIX
    }

    /// Checks that neither the address of a new client nor its prefix exceeds its limit. `factor` multiplies both.
    pub(super) fn check(&self, ip: IpAddr, factor: u32) {
        if is_exempt(ip) {
            return;
        }
        let (of_host, of_prefix) = (self.hosts[&host(ip)], self.prefixes[&cut(ip, 24, 56)]);
        assert!(of_host <= factor * PER_ADDRESS, "{of_host} clients of the address {ip} were admitted");
        assert!(of_prefix <= factor * PER_PREFIX, "{of_prefix} clients of the prefix of {ip} were admitted");
    }
}
