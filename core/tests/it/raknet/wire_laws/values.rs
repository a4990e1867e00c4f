//! Generators of the values that several packets contain.

use core::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

use proptest::collection::vec;
use proptest::prelude::*;
use rakwire::U24;
use rakwire::raknet::Guid;
use rakwire::wire::SecuritySizes;
use rakwire::wire::address::MAX_ADDRESS;
use rakwire::wire::offline::MAGIC;

pub(crate) fn addresses() -> impl Strategy<Value = SocketAddr> {
    let v4 = any::<([u8; 4], u16)>()
        .prop_map(|(ip, port)| SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::from(ip), port)));
    let v6 = any::<([u8; 16], u16, u32, u32)>().prop_map(|(ip, port, flow, scope)| {
        SocketAddr::V6(SocketAddrV6::new(Ipv6Addr::from(ip), port, flow, scope))
    });
    prop_oneof![v4, v6]
}

pub(crate) fn address_size(address: &SocketAddr) -> usize {
    if address.is_ipv4() { 7 } else { MAX_ADDRESS }
}

/// Generates lists of up to 10 or exactly 20 addresses of both IP versions.
pub(crate) fn address_lists() -> impl Strategy<Value = Vec<SocketAddr>> {
    prop_oneof![vec(addresses(), 10), vec(addresses(), 20), vec(addresses(), 0..10)]
}

pub(crate) fn guids() -> impl Strategy<Value = Guid> {
    any::<u64>().prop_map(Guid)
}

pub(crate) fn u24s() -> impl Strategy<Value = U24> {
    any::<u32>().prop_map(U24::new)
}

/// Generates keys without zero bytes. Zeros would let a truncated key be read as the padding of a reply without a key.
pub(crate) fn keys(length: u16) -> impl Strategy<Value = Vec<u8>> {
    vec(1_u8.., usize::from(length))
}

pub(crate) fn sizes() -> impl Strategy<Value = SecuritySizes> {
    let other = SecuritySizes { public_key: 33, challenge: 100, answer: 1, proof: 16, identity: 300 };
    prop_oneof![Just(SecuritySizes::ORIGINAL), Just(SecuritySizes::DOCUMENTED), Just(other)]
}

/// Generates cookies with a first byte that is not an address version.
///
/// Only the length distinguishes a request 2 with a cookie from one without. With such a first byte, a truncated
/// request could be a valid one without a cookie.
pub(crate) fn cookies() -> impl Strategy<Value = u32> {
    any::<u32>().prop_filter("looks like an address", |cookie| !matches!(cookie >> 24, 4 | 6))
}

/// Returns true if a request 2 without a cookie, truncated within this address, may be a valid one with a cookie.
///
/// The version, the family and the high byte of the port are then read as the cookie. The low byte of the port is read
/// as the flag, and the flow label as the beginning of an IPv4 address.
pub(crate) fn may_be_cut_to_a_cookie(server: &SocketAddr) -> bool {
    match server {
        SocketAddr::V4(_) => false,
        SocketAddr::V6(server) => server.port() & 0xFF == 0 && server.flowinfo() >> 24 == 4,
    }
}

/// The length of the id and the magic in bytes.
pub(crate) const HEAD: usize = 1 + MAGIC.len();
