//! Addresses as bytes: an IPv6 address and the port, in network order. IPv4 addresses stand inside IPv6.

use core::net::{IpAddr, SocketAddr};

/// Bytes of an address.
pub(super) const LENGTH: usize = 18;

pub(super) fn to_bytes(address: SocketAddr) -> [u8; LENGTH] {
    let ip = match address.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    let mut bytes = [0; LENGTH];
    let written = ip.octets().into_iter().chain(address.port().to_be_bytes());
    bytes.iter_mut().zip(written).for_each(|(place, byte)| *place = byte);
    bytes
}
