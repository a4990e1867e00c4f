//! How many of the places for clients one address and one network may take.
//!
//! An address is one of IPv4, or 64 bits of IPv6, which one customer has; a network has 24 bits of IPv4, or 48 of IPv6,
//! which one site has (RFC 6177 section 2). Addresses that the Internet does not pass on are not limited: behind them are
//! machines of the operator, such as a relay or a gateway of containers, through which many clients come.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// How many connections of others may come from one address, and from one network.
///
/// ```
/// use rakwire::endpoint::ClientLimits;
///
/// assert_eq!(ClientLimits::new(1_000, None, None), ClientLimits { address: 750, network: 875 });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientLimits {
    /// Connections from one address of IPv4, or from 64 bits of IPv6; 65,535 is no limit.
    pub address: u16,
    /// Connections from 24 bits of IPv4, or from 48 of IPv6; 65,535 is no limit.
    pub network: u16,
}

impl ClientLimits {
    /// The limits of a configuration with so many places. What it does not say leaves a quarter of the places to other
    /// addresses, and an eighth to other networks; servers with less than 16 leave none, since one household may fill them.
    #[must_use]
    pub const fn new(max_incoming: u16, address: Option<u16>, network: Option<u16>) -> Self {
        Self { address: or_share(address, max_incoming, 4), network: or_share(network, max_incoming, 8) }
    }

    pub(crate) const fn least(self) -> u16 {
        if self.address < self.network { self.address } else { self.network }
    }
}

/// Servers with fewer places have no limits by default: they are games among friends, who may share an address.
const SMALL: u16 = 16;

/// All places but one part in so many.
const fn or_share(limit: Option<u16>, places: u16, parts: u16) -> u16 {
    match (limit, places) {
        (Some(limit), _) => limit,
        (None, _) if places < SMALL => u16::MAX,
        (None, _) => places - places / parts,
    }
}

/// What a client is counted under: its address, and its network.
///
/// ```
/// use rakwire::endpoint::Origin;
///
/// let origin = |text: &str| Origin::of(text.parse().unwrap());
/// assert_eq!(origin("2001:db8::1"), origin("2001:db8::2"));
/// assert_eq!(origin("192.168.0.1"), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Equal for clients of one address of IPv4, or of 64 bits of IPv6.
    pub address: u128,
    /// Equal for clients of 24 bits of IPv4, or of 48 of IPv6.
    pub network: u128,
}

impl Origin {
    /// Returns nothing if clients with this address are not limited, because the Internet does not pass it on.
    #[must_use]
    pub fn of(address: IpAddr) -> Option<Self> {
        match address.to_canonical() {
            IpAddr::V4(ip) if is_local_ipv4(ip) => None,
            IpAddr::V4(ip) => {
                Some(Self { address: ip.to_bits().into(), network: (ip.to_bits() >> 8).into() })
            }
            IpAddr::V6(ip) if is_local_ipv6(ip) => None,
            // The first bits of global addresses are none of an IPv4 address.
            IpAddr::V6(ip) => {
                Some(Self { address: ip.to_bits() >> 64 << 64, network: ip.to_bits() >> 80 << 80 })
            }
        }
    }
}

const fn is_local_ipv4(ip: Ipv4Addr) -> bool {
    ip.is_loopback() || ip.is_private() || ip.is_link_local()
}

/// Loopback, link-local (RFC 4291 section 2.5.6) or unique local (RFC 4193 section 3.1).
const fn is_local_ipv6(ip: Ipv6Addr) -> bool {
    let [first, ..] = ip.segments();
    ip.is_loopback() || first & 0xffc0 == 0xfe80 || first & 0xfe00 == 0xfc00
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(text: &str) -> Option<Origin> {
        Origin::of(text.parse().expect("a literal address"))
    }

    #[test]
    fn a_quarter_of_the_places_is_for_other_addresses_and_an_eighth_for_other_networks() {
        for (places, address, network) in [
            (1, u16::MAX, u16::MAX),
            (15, u16::MAX, u16::MAX),
            (16, 12, 14),
            (100, 75, 88),
            (1_000, 750, 875),
        ] {
            assert_eq!(ClientLimits::new(places, None, None), ClientLimits { address, network }, "{places}");
        }
        assert_eq!(ClientLimits::new(8, Some(2), Some(9)), ClientLimits { address: 2, network: 9 });
    }

    #[test]
    fn a_customer_and_a_site_are_counted_together() {
        let same = |left: &str, right: &str| {
            let (left, right) =
                (origin(left).expect("a global address"), origin(right).expect("a global address"));
            (left.address == right.address, left.network == right.network)
        };
        assert_eq!(same("192.0.2.1", "::ffff:192.0.2.1"), (true, true));
        assert_eq!(same("192.0.2.1", "192.0.2.2"), (false, true));
        assert_eq!(same("192.0.2.1", "192.0.3.1"), (false, false));
        assert_eq!(same("2001:db8::1", "2001:db8::2:3"), (true, true));
        assert_eq!(same("2001:db8::1", "2001:db8:0:1::1"), (false, true));
        assert_eq!(same("2001:db8::1", "2001:db8:1::1"), (false, false));
    }

    #[test]
    fn addresses_of_the_operator_are_not_limited() {
        let local = [
            "127.0.0.1",
            "10.1.2.3",
            "172.17.0.1",
            "192.168.1.2",
            "169.254.1.1",
            "::1",
            "fe80::1",
            "fd00::1",
        ];
        for text in local {
            assert_eq!(origin(text), None, "{text}");
        }
        // The addresses of a carrier's NAT (RFC 6598) are many households.
        assert!(origin("100.64.0.1").is_some());
    }
}
