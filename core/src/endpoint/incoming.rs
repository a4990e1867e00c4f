//! Counts and limits of incoming connections, and admission requests.
//!
//! Limits apply per address and per network. An address is a whole IPv4 address, or a /64 of IPv6, the prefix of one
//! customer. A network is a /24 of IPv4, or a /48 of IPv6, the prefix of one site (RFC 6177 section 2). Addresses
//! that are not routed on the Internet are not limited. They belong to machines of the operator, such as a relay or a
//! container gateway, through which many clients connect.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use core::time::Duration;

use crate::rate_limit::Ration;

/// The flags that determine how a connection counts against the limits of incoming connections.
///
/// They take one byte, because they are stored for each connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Incoming(u8);

const COUNTED: u8 = 1;
const HALF_OPEN: u8 = 2;
const UNVALIDATED: u8 = 4;

impl Incoming {
    /// Not counted: this peer opened the connection, or it has closed.
    pub(crate) const NO: Self = Self(0);

    /// Creates the status of an incoming connection that has not closed.
    pub(crate) const fn new(is_half_open: bool, is_unvalidated: bool) -> Self {
        let half_open = if is_half_open { HALF_OPEN } else { 0 };
        let unvalidated = if is_unvalidated { UNVALIDATED } else { 0 };
        Self(COUNTED | half_open | unvalidated)
    }

    pub(crate) const fn is_counted(self) -> bool {
        self.0 & COUNTED != 0
    }

    /// Returns true if the client has not sent its connection request yet.
    pub(crate) const fn is_half_open(self) -> bool {
        self.0 & HALF_OPEN != 0
    }

    /// Returns true if the address of the client is not validated.
    pub(crate) const fn is_unvalidated(self) -> bool {
        self.0 & UNVALIDATED != 0
    }

    /// Returns true if the address of the client was unvalidated and is validated in `after`.
    pub(crate) const fn is_validated_by(self, after: Self) -> bool {
        self.is_unvalidated() && after.is_counted() && !after.is_unvalidated()
    }
}

/// An origin that has reached its limits, and the limits.
pub(crate) type CrowdedOrigin = (Origin, ClientLimits);

/// The number of cached origins; without `alloc` there are few connections to examine, so none is cached.
const CROWDED: usize = if cfg!(all(feature = "alloc", feature = "server")) { 2 } else { 0 };

/// The counts of incoming connections at one peer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IncomingCounts {
    pub(crate) all: u16,
    /// The number of half-open connections.
    pub(crate) half_open: u16,
    /// The number of connections, open or half open, without a validated address.
    pub(crate) unvalidated: u16,
    /// The rate limit for new clients without a validated address, used only if the configuration has one.
    pub(crate) ration: Ration,
    /// The origins last found at their limits: for unvalidated clients first, then for validated ones.
    ///
    /// Until the counts change, further clients of these origins are refused without examining all connections.
    crowded: [Option<CrowdedOrigin>; CROWDED],
}

impl IncomingCounts {
    /// Called when a connection changed its status from `before` to `after`.
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

/// The maximum numbers of incoming connections from one address and from one network.
///
/// ```
/// use rakwire::endpoint::ClientLimits;
///
/// assert_eq!(ClientLimits::new(1_000, None, None), ClientLimits { address: 750, network: 875 });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientLimits {
    /// Maximum from one IPv4 address or one /64 of IPv6; 65,535 means no limit.
    pub address: u16,
    /// Maximum from one /24 of IPv4 or one /48 of IPv6; 65,535 means no limit.
    pub network: u16,
}

impl ClientLimits {
    /// Returns the limits for `max_incoming` slots; `None` for a limit selects its default.
    ///
    /// By default one address may use three quarters of the slots, and one network seven eighths. With fewer than 16
    /// slots there is no default limit, because one household may fill them.
    #[must_use]
    pub const fn new(max_incoming: u16, address: Option<u16>, network: Option<u16>) -> Self {
        Self { address: or_share(address, max_incoming, 4), network: or_share(network, max_incoming, 8) }
    }

    pub(crate) const fn least(self) -> u16 {
        if self.address < self.network { self.address } else { self.network }
    }
}

/// The number of slots from which default limits apply. A smaller server may be filled by friends in one household.
const SMALL: u16 = 16;

/// Returns `limit`, or by default all slots (`places`) minus `places / parts`.
const fn or_share(limit: Option<u16>, places: u16, parts: u16) -> u16 {
    match (limit, places) {
        (Some(limit), _) => limit,
        (None, _) if places < SMALL => u16::MAX,
        (None, _) => places - places / parts,
    }
}

/// The keys under which a client counts: its address and its network.
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
    /// The key of the address, equal for all clients of one IPv4 address or one /64 of IPv6.
    pub address: u128,
    /// The key of the network, equal for all clients of one /24 of IPv4 or one /48 of IPv6.
    pub network: u128,
}

impl Origin {
    /// Returns the origin of an address, or `None` if the address is not routed on the Internet and so not limited.
    #[must_use]
    pub fn of(address: IpAddr) -> Option<Self> {
        match address.to_canonical() {
            IpAddr::V4(ip) if is_local_ipv4(ip) => None,
            IpAddr::V4(ip) => {
                Some(Self { address: ip.to_bits().into(), network: (ip.to_bits() >> 8).into() })
            }
            IpAddr::V6(ip) if is_local_ipv6(ip) => None,
            // The leading bits of a global IPv6 address differ from those of every IPv4 key.
            IpAddr::V6(ip) => {
                Some(Self { address: ip.to_bits() >> 64 << 64, network: ip.to_bits() >> 80 << 80 })
            }
        }
    }
}

const fn is_local_ipv4(ip: Ipv4Addr) -> bool {
    ip.is_loopback() || ip.is_private() || ip.is_link_local()
}

/// Returns true for IPv6 addresses that are not routed on the Internet.
///
/// These are loopback, link-local (RFC 4291 section 2.5.6) and unique local (RFC 4193 section 3.1) addresses.
const fn is_local_ipv6(ip: Ipv6Addr) -> bool {
    let [first, ..] = ip.segments();
    ip.is_loopback() || first & 0xffc0 == 0xfe80 || first & 0xfe00 == 0xfc00
}

/// A client that requests a connection.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(
    not(all(feature = "alloc", feature = "server")),
    expect(dead_code, reason = "a request is only read by shared admission")
)]
pub(crate) struct Request {
    /// The GUID of the client, if the protocol has one.
    pub(crate) identity: Option<u64>,
    pub(crate) address: SocketAddr,
    pub(crate) max_incoming: u16,
    /// The minimum time between two connections of one address.
    pub(crate) interval: Option<Duration>,
    /// True if the address of the client is validated.
    pub(crate) is_validated: bool,
    /// The maximum number of half-open connections of a network, if limited.
    pub(crate) half_open: Option<u16>,
    /// The maximum numbers of connections of one address and one network.
    pub(crate) limits: ClientLimits,
}

/// The reason why a client is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    not(all(feature = "alloc", feature = "server")),
    expect(dead_code, reason = "some reasons only exist with shared admission")
)]
pub(crate) enum Rejection {
    /// The address is banned.
    Banned,
    /// A connection with this GUID exists.
    Known,
    /// The address opened another connection less than `interval` ago.
    Recent,
    /// The maximum number of connections is reached.
    Full,
    /// The address or its network has reached its maximum number of connections.
    Crowded,
    /// The address is not validated, and the quota of unvalidated clients is used up.
    ///
    /// With a validated address the client would be admitted.
    Unvalidated,
    /// The network has reached its maximum number of half-open connections.
    HalfOpen,
    /// The application returned [`Decision::Refuse`](super::admission::Decision::Refuse).
    Refused,
    /// The application returned [`Decision::Ignore`](super::admission::Decision::Ignore).
    Ignored,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(text: &str) -> Option<Origin> {
        Origin::of(text.parse().expect("a literal address"))
    }

    #[test]
    fn default_limits_leave_slots_to_other_origins() {
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
    fn addresses_of_one_customer_or_site_are_counted_together() {
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
    fn addresses_not_routed_on_the_internet_are_not_limited() {
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
        // An address of a carrier-grade NAT (RFC 6598) represents many households, so it is limited.
        assert!(origin("100.64.0.1").is_some());
    }
}
