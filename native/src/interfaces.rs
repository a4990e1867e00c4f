//! The addresses of this machine.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// Addresses that belong to nobody (RFC 5737, RFC 3849): what the system would send to them leaves by its usual
/// interface.
const ELSEWHERE: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), IpAddr::V6(Ipv6Addr::new(0x2001, 0xDB8, 0, 0, 0, 0, 0, 1))];

/// Where others in the same network reach a socket that is bound to `local`.
pub(crate) fn own_addresses(local: SocketAddr) -> Vec<SocketAddr> {
    if !local.ip().is_unspecified() {
        return vec![local];
    }
    // A socket for IPv6 hears IPv4 too.
    let families = ELSEWHERE.into_iter().filter(|elsewhere| elsewhere.is_ipv4() || local.is_ipv6());
    families.filter_map(own_address_towards).map(|source| SocketAddr::new(source, local.port())).collect()
}

/// The address from which the system would send to another one; nothing is sent.
pub(crate) fn own_address_towards(elsewhere: IpAddr) -> Option<IpAddr> {
    let unspecified: IpAddr = match elsewhere {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((unspecified, 0)).ok()?;
    socket.connect((elsewhere, 9)).ok()?;
    socket.local_addr().ok().map(|address| address.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_address_is_the_only_one() {
        let bound = SocketAddr::from(([127, 0, 0, 1], 19_132));
        assert_eq!(own_addresses(bound), [bound]);
    }

    #[test]
    fn all_addresses_stand_for_those_that_others_reach() {
        let all = own_addresses((Ipv4Addr::UNSPECIFIED, 19_132).into());
        assert!(
            all.len() <= 1 && all.iter().all(|own| own.port() == 19_132 && !own.ip().is_unspecified()),
            "{all:?}"
        );
    }
}
