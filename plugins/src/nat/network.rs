//! Whom clients count for that have the same address.

use core::net::IpAddr;

/// The part of an IPv6 address that its network has; the rest one machine may choose as it likes.
const NETWORK_V6: u128 = !(u64::MAX as u128);

/// An address of IPv4, or a network of IPv6 with 64 bits: what one machine has at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Network(IpAddr);

impl Network {
    pub(super) fn of(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V4(ip) => ip.into(),
            IpAddr::V6(ip) => core::net::Ipv6Addr::from_bits(ip.to_bits() & NETWORK_V6).into(),
        })
    }
}
