//! Connections that others open: how they are counted, how many of the places for clients one address and one network may take,
//! and what a peer asks those with whom it decides whom it lets in.
//!
//! An address is one of IPv4, or 64 bits of IPv6, which one customer has; a network has 24 bits of IPv4, or 48 of IPv6,
//! which one site has (RFC 6177 section 2). Addresses that the Internet does not pass on are not limited: behind them are
//! machines of the operator, such as a relay or a gateway of containers, through which many clients come.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use core::time::Duration;

use crate::rate_limit::Ration;

/// How a connection counts among those that others opened. It is kept for each, so it is one byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Incoming(u8);

const COUNTED: u8 = 1;
const HALF_OPEN: u8 = 2;
const UNVALIDATED: u8 = 4;

impl Incoming {
    /// This end opened it, or it has ended.
    pub(crate) const NO: Self = Self(0);

    /// Another peer opened it, and it has not ended.
    pub(crate) const fn new(is_half_open: bool, is_unvalidated: bool) -> Self {
        let half_open = if is_half_open { HALF_OPEN } else { 0 };
        let unvalidated = if is_unvalidated { UNVALIDATED } else { 0 };
        Self(COUNTED | half_open | unvalidated)
    }

    pub(crate) const fn is_counted(self) -> bool {
        self.0 & COUNTED != 0
    }

    /// Whether the other peer has not introduced itself.
    pub(crate) const fn is_half_open(self) -> bool {
        self.0 & HALF_OPEN != 0
    }

    /// Whether the other peer has not shown that its address is its own.
    pub(crate) const fn is_unvalidated(self) -> bool {
        self.0 & UNVALIDATED != 0
    }

    /// Whether the other peer has shown that its address is its own, if the connection counts like `after` now.
    pub(crate) const fn is_validated_by(self, after: Self) -> bool {
        self.is_unvalidated() && after.is_counted() && !after.is_unvalidated()
    }
}

/// An origin and the limits that it has reached.
pub(crate) type CrowdedOrigin = (Origin, ClientLimits);

/// Origins that are remembered; boards have few connections to look at.
const CROWDED: usize = if cfg!(all(feature = "alloc", feature = "server")) { 2 } else { 0 };

/// The connections of a peer that others opened.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IncomingCounts {
    pub(crate) all: u16,
    /// Those of them that are half open.
    pub(crate) half_open: u16,
    /// Those of them, open or not, whose address is not validated.
    pub(crate) unvalidated: u16,
    /// Further ones that may be let in without a validated address, where that depends on the load.
    pub(crate) ration: Ration,
    /// The origins that were found crowded last, by clients without and with a validated address, as long as no connection
    /// counts otherwise than then: further clients of the same origin are refused without looking at all connections.
    crowded: [Option<CrowdedOrigin>; CROWDED],
}

impl IncomingCounts {
    /// A connection that counted like `before` counts like `after`.
    #[cold]
    pub(crate) const fn change(&mut self, before: Incoming, after: Incoming) {
        recount(&mut self.all, before.is_counted(), after.is_counted());
        recount(&mut self.half_open, before.is_half_open(), after.is_half_open());
        recount(&mut self.unvalidated, before.is_unvalidated(), after.is_unvalidated());
        self.crowded = [None; CROWDED];
    }

    pub(crate) fn is_crowded(&self, origin: CrowdedOrigin, is_validated: bool) -> bool {
        self.crowded.get(usize::from(is_validated)) == Some(&Some(origin))
    }

    pub(crate) fn note_crowded(&mut self, origin: CrowdedOrigin, is_validated: bool) {
        if let Some(crowded) = self.crowded.get_mut(usize::from(is_validated)) {
            *crowded = Some(origin);
        }
    }
}

const fn recount(count: &mut u16, before: bool, after: bool) {
    match (before, after) {
        (false, true) => *count = count.saturating_add(1),
        (true, false) => *count = count.saturating_sub(1),
        (false, false) | (true, true) => {}
    }
}

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

/// A client that wants a connection.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(
    not(all(feature = "alloc", feature = "server")),
    expect(dead_code, reason = "a peer that decides alone asks nobody")
)]
pub(crate) struct Request {
    /// The GUID, where there is one.
    pub(crate) identity: Option<u64>,
    pub(crate) address: SocketAddr,
    pub(crate) max_incoming: u16,
    /// How long an address must wait between two connections.
    pub(crate) interval: Option<Duration>,
    /// Whether the client has proved that the address is its own.
    pub(crate) is_validated: bool,
    /// How many connections of a network may be half open, if that is limited.
    pub(crate) half_open: Option<u16>,
    /// How many connections may come from one address and from one network.
    pub(crate) limits: ClientLimits,
}

/// Why a client gets no connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    not(all(feature = "alloc", feature = "server")),
    expect(dead_code, reason = "a peer that decides alone has its own words")
)]
pub(crate) enum Rejection {
    /// The address is banned.
    Banned,
    /// There is a connection with this identity.
    Known,
    /// The address has opened a connection a moment ago.
    Recent,
    /// There are as many connections as there may be.
    Full,
    /// The address or its network has as many connections as it may have.
    Crowded,
    /// It has not proved its address, and others that have not either are in its way: a client that proves its address gets a
    /// place.
    Unvalidated,
    /// As many connections of the network as may be are half open.
    HalfOpen,
    /// The application turns the client away.
    Refused,
    /// The application leaves the client without an answer.
    Ignored,
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
