//! The state of a peer that all its connections share.
//!
//! It consists of:
//!
//! - the protocol versions of recent servers,
//! - the recent losses and receive windows of all connections,
//! - the rate limits and keys of secure handshakes.

use core::net::SocketAddr;

#[cfg(feature = "secure")]
pub(crate) use handshakes::SecureState;
use heapless::Deque;

use super::config::{UNCONNECTED, room};
use crate::storage::Slots;

/// True if protocol versions of servers are remembered.
///
/// Without an allocator there is no memory for them, and a client queries the version for each attempt.
const REMEMBERS: bool = cfg!(feature = "alloc");
/// True if a client can query the protocol version of a server before it connects.
pub(super) const ASKS: bool = UNCONNECTED;
/// The number of servers with a remembered version; a new one replaces the oldest.
const SERVERS: usize = room(REMEMBERS, 16);

/// The protocol version of current Minecraft Bedrock.
pub(super) const BEDROCK: u8 = 11;

/// The protocol versions of the servers that responded last.
#[derive(Debug, Default)]
pub(super) struct KnownVersions(Deque<(SocketAddr, u8), SERVERS>);

impl KnownVersions {
    /// Returns the version of the server at this address, if remembered.
    pub(super) fn of(&self, server: SocketAddr) -> Option<u8> {
        if !REMEMBERS {
            return None;
        }
        self.0.iter().find(|(address, _)| *address == server).map(|(_, version)| *version)
    }

    pub(super) fn remember(&mut self, server: SocketAddr, version: u8) {
        if !REMEMBERS {
            return;
        }
        if let Some((_, known)) = self.0.iter_mut().find(|(address, _)| *address == server) {
            *known = version;
            return;
        }
        if self.0.is_full() {
            self.0.pop_front();
        }
        // Cannot fail: the oldest was removed if the queue was full.
        let _ = self.0.push_back((server, version));
    }
}

/// The number of words for the receive window of a connection.
pub(super) const WINDOW_WORDS: usize = 64;
/// The number of words for the recent losses of a connection.
pub(super) const LOST_WORDS: usize = 24;
/// The number of words for each connection.
pub(super) const WORDS: usize = WINDOW_WORDS + LOST_WORDS;

/// Words for each connection, in the order of slots.
///
/// The code that writes the words defines their format. Words that a connection has not written may hold data of an
/// earlier connection in the slot.
#[derive(Debug)]
pub(crate) struct LossHistory<'a>(Slots<'a, u32>);

impl<'a> LossHistory<'a> {
    pub(super) const fn new(words: Slots<'a, u32>) -> Self {
        Self(words)
    }

    /// Returns the words for the receive window of a connection.
    #[inline]
    pub(crate) fn window(&mut self, slot: u16) -> Option<&mut [u32; WINDOW_WORDS]> {
        self.part(slot, 0)
    }

    /// Returns the words for the recent losses of a connection.
    #[inline]
    pub(crate) fn lost(&mut self, slot: u16) -> Option<&mut [u32; LOST_WORDS]> {
        self.part(slot, WINDOW_WORDS)
    }

    #[inline]
    fn part<const LENGTH: usize>(&mut self, slot: u16, from: usize) -> Option<&mut [u32; LENGTH]> {
        let part = self.0.get_mut(usize::from(slot) * WORDS + from..)?.first_chunk_mut();
        debug_assert!(part.is_some(), "no words for slot {slot}");
        part
    }
}

/// The state of a peer for its secure handshakes.
#[cfg(feature = "secure")]
mod handshakes {
    use core::fmt;
    use core::net::IpAddr;

    use crate::raknet::config::{Config, SERVER, room};
    use crate::raknet::security::Security;
    use crate::rate_limit::{Bucket, HashedBuckets, Rates, network};
    use crate::secure::SeededRandom;
    use crate::time::Instant;

    /// The number of groups of networks; each group has its own rate limit.
    const NETWORKS: usize = room(SERVER, 32);

    /// The handshake rate limit of a site (a /48 of IPv6), as a multiple of the limit of a network.
    ///
    /// One customer may have a whole /48, which contains 65,536 networks.
    const NETWORKS_OF_SITE: u16 = 4;

    /// The rate limit of handshakes.
    #[derive(Debug, Default)]
    struct HandshakeLimit {
        all: Bucket,
        networks: HashedBuckets<NETWORKS>,
        /// Buckets of the sites; IPv6 only.
        sites: HashedBuckets<NETWORKS>,
    }

    impl HandshakeLimit {
        /// Takes a handshake from the limits; returns false if one of them is reached.
        ///
        /// A refused handshake takes nothing from any bucket. Otherwise a network could use up the rate of its site,
        /// and a site could use up the total rate.
        fn take(&mut self, secret: &[u8; 16], rates: Rates, now: Instant, from: IpAddr) -> bool {
            let network = self.networks.of(secret, network(from));
            let site = site(from).and_then(|site| self.sites.of(secret, site));
            let of_site = rates.network.saturating_mul(NETWORKS_OF_SITE);
            let buckets = [(network, rates.network), (site, of_site), (Some(&mut self.all), rates.all)];
            let mut buckets = buckets.map(|(bucket, rate)| bucket.map(|bucket| (bucket, rate)));
            let is_left = buckets.iter_mut().flatten().all(|(bucket, rate)| bucket.fill_up(*rate, now));
            if is_left {
                buckets.iter_mut().flatten().for_each(|(bucket, _)| bucket.spend());
            }
            is_left
        }
    }

    /// Returns the /48 of an IPv6 address.
    const fn site(address: IpAddr) -> Option<u128> {
        match address.to_canonical() {
            IpAddr::V4(_) => None,
            IpAddr::V6(ip) => Some(ip.to_bits() >> 80),
        }
    }

    /// The state of a peer for its secure handshakes.
    pub(crate) struct SecureState {
        random: SeededRandom,
        limit: HandshakeLimit,
        /// A point in time, and the corresponding Unix time in seconds.
        unix_time: Option<(Instant, u64)>,
    }

    impl fmt::Debug for SecureState {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.debug_struct("SecureState").field("limit", &self.limit).finish_non_exhaustive()
        }
    }

    impl SecureState {
        pub(in crate::raknet) fn new(config: &mut Config) -> Self {
            // Without security settings the generator is never used.
            let random = config.security.as_mut().map_or_else(SeededRandom::unseeded, Security::take_random);
            Self { random, limit: HandshakeLimit::default(), unix_time: None }
        }

        pub(crate) const fn random(&mut self) -> &mut SeededRandom {
            &mut self.random
        }

        pub(in crate::raknet) const fn set_unix_time(&mut self, now: Instant, seconds: u64) {
            self.unix_time = Some((now, seconds));
        }

        /// Returns the Unix time in seconds.
        ///
        /// Until it is set, the result is the maximum, so that every token counts as expired.
        pub(crate) fn unix_time(&self, now: Instant) -> u64 {
            self.unix_time.map_or(u64::MAX, |(then, seconds)| {
                seconds.saturating_add(now.saturating_since(then).as_secs())
            })
        }

        /// Returns true if a handshake may be computed for a client at this address.
        pub(crate) fn admits(&mut self, config: &Config, now: Instant, from: IpAddr) -> bool {
            let rates = config.security.as_ref().map(Security::rates);
            rates.is_some_and(|rates| self.limit.take(&config.secret, rates, now, from))
        }
    }

    #[cfg(test)]
    mod tests {
        use core::net::Ipv6Addr;

        use super::*;

        const RATES: Rates = Rates { all: 1_000, network: 50, address: 0 };

        /// Returns how many handshakes a site gets in a burst if each of `networks` networks requests 100.
        fn admitted(limit: &mut HandshakeLimit, site: u16, networks: u16) -> usize {
            let from = |network| IpAddr::V6(Ipv6Addr::new(0x2001, 0xDB8, site, network, 0, 0, 0, 1));
            let all = (0..networks).flat_map(|network| core::iter::repeat_n(from(network), 100));
            all.filter(|from| limit.take(&[3; 16], RATES, Instant::from_micros(1_000_000), *from)).count()
        }

        #[test]
        fn a_site_with_many_networks_gets_four_times_the_rate_of_a_network() {
            let mut limit = HandshakeLimit::default();
            assert_eq!(admitted(&mut limit, 1, 1), 50, "one network does not get the rate of its site");
            assert_eq!(admitted(&mut limit, 1, 1_000), 150);
            let others = (2..800).map(|site| Ipv6Addr::new(0x2001, 0xDB8, site, 0, 0, 0, 0, 1).into());
            let now = Instant::from_micros(1_000_000);
            let others = others.filter(|other| limit.take(&[3; 16], RATES, now, *other)).count();
            assert!(others > 500, "{others} other sites were admitted");
        }

        #[test]
        fn the_site_of_an_ipv6_address_is_its_48_bit_prefix_and_ipv4_has_none() {
            assert_eq!(site(IpAddr::from([10, 0, 0, 1])), None);
            assert_eq!(site(Ipv6Addr::from_bits(0xFFFF_0A00_0001).into()), None);
            let site_of = |text: &str| site(text.parse().expect("an address"));
            assert_eq!(site_of("2001:db8:1:2::3"), site_of("2001:db8:1:ffff::4"));
            assert_ne!(site_of("2001:db8:1::1"), site_of("2001:db8:2::1"));
        }
    }
}
