//! Rate limits for responses to unconnected peers, and the address prefix that identifies one host.
//!
//! A response may be longer than its request, and the source address of the request may be forged. Without a limit,
//! responses would amplify an attack.

use core::hash::Hasher;
use core::net::{IpAddr, Ipv6Addr};
use core::time::Duration;

use siphasher::sip::SipHasher13;

use crate::time::{Instant, micros};

/// A token bucket with a capacity of one second's worth of tokens.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bucket {
    /// Tokens taken, in thousandths of a response.
    taken: u32,
    at: u32,
}

impl Bucket {
    /// Refills the bucket up to `now`; returns true if a token is left.
    pub(crate) fn fill_up(&mut self, rate: u16, now: Instant) -> bool {
        let now = u32::try_from(now.as_millis() & u64::from(u32::MAX)).unwrap_or(0);
        let refilled = now.wrapping_sub(self.at).min(1_000) * u32::from(rate);
        self.at = now;
        self.taken = self.taken.saturating_sub(refilled);
        self.taken + 1_000 <= u32::from(rate) * 1_000
    }

    /// Returns true if a token may be borrowed after [`fill_up`](Self::fill_up), up to half a second's worth.
    const fn has_advance(&self, rate: u16) -> bool {
        self.taken.saturating_add(1_000) <= rate as u32 * 1_500
    }

    /// Takes a token. Precondition: [`fill_up`](Self::fill_up) or [`has_advance`](Self::has_advance) returned true.
    pub(crate) const fn spend(&mut self) {
        self.taken = self.taken.saturating_add(1_000);
    }

    /// Takes a token; returns false if none is left.
    pub(crate) fn take(&mut self, rate: u16, now: Instant) -> bool {
        let possible = self.fill_up(rate, now);
        if possible {
            self.spend();
        }
        possible
    }
}

/// The maximum number of events within a period.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowance {
    pub(crate) events: u16,
    /// The period. The maximum is 2^32 microseconds (71 minutes); longer periods are clamped.
    pub(crate) period: Duration,
}

/// The used part of an [`Allowance`]. It refills at a constant rate, from empty to full in one period.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ration {
    /// Events used, multiplied by the period in microseconds.
    ///
    /// Each microsecond subtracts the number of events of the allowance, so refilling needs no division.
    spent: u64,
    at: Instant,
    /// The period of the allowance at the last event, in microseconds.
    period: u32,
    events: u16,
}

impl Ration {
    /// Returns the value of `spent` after one more event, or `None` if that event would exceed the allowance.
    fn after_another(&self, allowance: Allowance, now: Instant) -> Option<u64> {
        let (events, period) = (u64::from(allowance.events), u64::from(micros(allowance.period)));
        let refilled = u64::from(now.micros_since(self.at)) * events;
        let spent = self.spent.saturating_sub(refilled) + period;
        (spent <= events * period).then_some(spent)
    }

    /// Returns true if one more event is allowed at `now`.
    pub(crate) fn is_left(&self, allowance: Allowance, now: Instant) -> bool {
        self.after_another(allowance, now).is_some()
    }

    /// Takes one event; returns false if none is left.
    pub(crate) fn take(&mut self, allowance: Allowance, now: Instant) -> bool {
        let after = self.after_another(allowance, now);
        if let Some(spent) = after {
            *self = Self { spent, at: now, period: micros(allowance.period), events: allowance.events };
        }
        after.is_some()
    }

    /// Returns one event that was taken at `taken_at`, minus the part that has been refilled since.
    ///
    /// The refilled part is already available, and may have been taken by another event.
    pub(crate) fn refund(&mut self, taken_at: Instant, now: Instant) {
        let refilled = u64::from(now.micros_since(taken_at)) * u64::from(self.events);
        self.spent = self.spent.saturating_sub(u64::from(self.period).saturating_sub(refilled));
    }
}

/// Limits in responses per second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rates {
    pub(crate) all: u16,
    pub(crate) network: u16,
    /// The rate guaranteed to one address within its network; 0 disables the guarantee, so all addresses share the
    /// network's limit.
    pub(crate) address: u16,
}

/// The number of address groups, each with a guaranteed part of its network's rate.
///
/// The number is large enough that one second of responses, as limited per network group, cannot exhaust all address
/// groups.
pub(crate) const ADDRESS_GROUPS: usize = if cfg!(feature = "alloc") { 256 } else { 32 };

/// Token buckets for a fixed number of groups of networks or addresses. A keyed hash selects the group.
#[derive(Debug)]
pub(crate) struct HashedBuckets<const GROUPS: usize>([Bucket; GROUPS]);

impl<const GROUPS: usize> Default for HashedBuckets<GROUPS> {
    fn default() -> Self {
        Self([Bucket::default(); GROUPS])
    }
}

impl<const GROUPS: usize> HashedBuckets<GROUPS> {
    /// Returns the bucket for the group of `network`.
    pub(crate) fn of(&mut self, secret: &[u8; 16], network: u128) -> Option<&mut Bucket> {
        let mut hasher = SipHasher13::new_with_key(secret);
        hasher.write_u128(network);
        let place = usize::try_from(hasher.finish().checked_rem(GROUPS as u64)?).unwrap_or(0);
        self.0.get_mut(place)
    }
}

/// Token buckets for all responses, for each group of networks, and for each group of addresses.
///
/// The rate of a network is divided fairly among its addresses. An address below its fair part may borrow tokens,
/// while addresses above it wait for the refill. A single active address gets the whole rate of its network.
#[derive(Debug, Default)]
pub(crate) struct RateLimit<const NETWORKS: usize = 32, const ADDRESSES: usize = 0> {
    all: Bucket,
    networks: HashedBuckets<NETWORKS>,
    addresses: HashedBuckets<ADDRESSES>,
}

impl<const NETWORKS: usize, const ADDRESSES: usize> RateLimit<NETWORKS, ADDRESSES> {
    /// Takes the tokens for one response to `to`; returns false if the limit is reached.
    pub(crate) fn admits(&mut self, secret: &[u8; 16], rates: Rates, now: Instant, to: IpAddr) -> bool {
        let Some(network) = self.networks.of(secret, network(to)) else { return false };
        let has_token = network.fill_up(rates.network, now);
        if !self.all.fill_up(rates.all, now) || !has_token && !network.has_advance(rates.network) {
            return false;
        }
        // A refused response takes no token from any bucket.
        let address = if rates.address > 0 { self.addresses.of(secret, address_bits(to)) } else { None };
        let is_within_share = address.is_some_and(|address| address.take(rates.address, now));
        let is_admitted = has_token || is_within_share;
        if is_admitted {
            network.spend();
            self.all.spend();
        }
        is_admitted
    }
}

/// Returns the bits of an address, with one more bit set that is clear in every network key.
const fn address_bits(address: IpAddr) -> u128 {
    match address.to_canonical() {
        IpAddr::V4(ip) => ip.to_bits() as u128 | 1 << 64,
        IpAddr::V6(ip) => ip.to_bits(),
    }
}

/// Returns the network of an address: the first 24 bits of IPv4, or the first 64 bits of IPv6.
///
/// A dual-stack socket reports IPv4 addresses as IPv4-mapped IPv6 addresses; without unmapping, all of them would be
/// one network.
pub(crate) const fn network(address: IpAddr) -> u128 {
    match address.to_canonical() {
        IpAddr::V4(ip) => (ip.to_bits() >> 8) as u128,
        IpAddr::V6(ip) => ip.to_bits() & !(u64::MAX as u128),
    }
}

/// The mask of the part of an IPv6 address that its host cannot choose.
const PREFIX_V6: u128 = !(u64::MAX as u128);

/// The address prefix that one host controls: a whole IPv4 address, or the first 64 bits of IPv6.
///
/// An IPv6 host chooses the lower 64 bits freely, so limits per host use this prefix.
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
    /// Returns the prefix of `address`; an IPv4-mapped IPv6 address counts as IPv4.
    #[must_use]
    pub const fn of(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V4(ip) => IpAddr::V4(ip),
            IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & PREFIX_V6)),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use bolero::{ValueGenerator, one_of, produce};

    use super::*;

    const SECRET: [u8; 16] = [3; 16];

    /// Returns the largest number of `times` within any window of `span`. Both are in milliseconds; `times` are
    /// sorted.
    fn most_within(times: &[u64], span: u64) -> usize {
        let within =
            times.iter().map(|first| times.iter().filter(|at| (*first..*first + span).contains(at)).count());
        within.max().unwrap_or(0)
    }

    /// Generates the times of events in milliseconds, sorted.
    fn any_times() -> impl ValueGenerator<Output = Vec<u64>> {
        let waits = produce::<Vec<u64>>().with().len(0..300_usize).values(0..70_u64);
        waits.map_gen(|waits| {
            let add = |millis: &mut u64, wait| {
                *millis += wait;
                Some(*millis)
            };
            waits.into_iter().scan(5_000, add).collect()
        })
    }

    /// A bucket allows a burst of at most one second's rate, plus its rate in each further second.
    #[test]
    fn a_bucket_never_exceeds_its_rate() {
        let input = (0..50_u16, any_times());
        bolero::check!().with_iterations(256).with_generator(input).for_each(|(rate, times)| {
            let (mut bucket, mut taken) = (Bucket::default(), times.clone());
            taken.retain(|millis| bucket.take(*rate, Instant::from_micros(1_000 * millis)));
            for seconds in 1..5_u64 {
                let most = usize::from(*rate) * (1 + seconds as usize);
                assert!(most_within(&taken, 1_000 * seconds) <= most);
            }
        });
    }

    /// A ration allows at most twice its allowance in one period, and its allowance in each further period.
    #[test]
    fn a_ration_allows_one_burst_beyond_its_rate() {
        let input = (0..20_u16, 1..2_000_u64, any_times());
        bolero::check!().with_iterations(256).with_generator(input).for_each(|(events, period, times)| {
            let allowance = Allowance { events: *events, period: Duration::from_millis(*period) };
            let (mut ration, mut taken) = (Ration::default(), times.clone());
            taken.retain(|millis| {
                let now = Instant::from_micros(1_000 * millis);
                let is_left = ration.is_left(allowance, now);
                assert_eq!(ration.take(allowance, now), is_left);
                is_left
            });
            for periods in 1..5_u64 {
                let most = usize::from(*events) * (1 + periods as usize);
                assert!(most_within(&taken, period * periods) <= most);
            }
        });
    }

    /// Takes two events and refunds the first. The refund frees an event only if the ration has not refilled since.
    #[test]
    #[cfg_attr(kani, kani::proof)]
    fn a_ration_accounts_for_refills_and_refunds() {
        let wait = one_of((produce::<u64>(), 0..=u64::from(u32::MAX)));
        let input = (0..4_u16, 1..=u64::from(u32::MAX), produce::<u64>(), wait);
        bolero::check!().with_iterations(10_000).with_generator(input).for_each(
            |(events, period, first, wait)| {
                let allowance = Allowance { events: *events, period: Duration::from_micros(*period) };
                let [first, second] = [*first, first.saturating_add(*wait)].map(Instant::from_micros);
                let is_refilled = u64::from(second.micros_since(first)) >= *period;
                let mut ration = Ration::default();
                assert_eq!(ration.take(allowance, first), *events > 0);
                assert_eq!(ration.take(allowance, second), *events > 1 || *events == 1 && is_refilled);
                ration.refund(first, second);
                assert_eq!(ration.is_left(allowance, second), *events > 1 || *events == 1 && !is_refilled);
            },
        );
    }

    #[test]
    fn responses_are_limited_per_network_and_in_total() {
        let rates = Rates { network: 5, all: 12, address: 0 };
        let mut limit = <RateLimit>::default();
        let mut count = |now, network: u8| {
            let to = IpAddr::from([10, network, 0, 1]);
            (0..100).filter(|_| limit.admits(&SECRET, rates, Instant::from_micros(now), to)).count()
        };
        assert_eq!(count(1_000_000, 1), 5);
        assert_eq!(count(1_000_000, 1), 0);
        let others: usize = (2..50).map(|network| count(1_000_000, network)).sum();
        assert_eq!(others, 7);
        assert_eq!(count(1_200_000, 1), 1);
        assert_eq!(count(900_000_000, 1), 5);
    }

    #[test]
    fn an_address_flooding_requests_leaves_the_guaranteed_rate_to_its_network() {
        let rates = Rates { network: 20, all: 1_000, address: 5 };
        let mut limit = RateLimit::<32, 32>::default();
        let mut asks = |now: u64, host: u8, times: usize| {
            let to = IpAddr::from([10, 1, 1, host]);
            (0..times).filter(|_| limit.admits(&SECRET, rates, Instant::from_micros(now), to)).count()
        };
        let mut greedy = 0;
        for second in 1..=20 {
            for tenth in 0..10 {
                let now = second * 1_000_000 + tenth * 100_000;
                greedy += asks(now, 1, 1_000);
                // Two other addresses send one request per second, like a client that shows a server list.
                assert_eq!(asks(now + 1, 2, usize::from(tenth == 3)), usize::from(tenth == 3), "{now}");
                assert_eq!(asks(now + 1, 3, usize::from(tenth == 7)), usize::from(tenth == 7), "{now}");
            }
        }
        // The first address gets the rest of the network's rate.
        assert!((330..=390).contains(&greedy), "{greedy}");
    }

    #[test]
    fn a_network_flooding_requests_does_not_block_other_networks() {
        let rates = Rates { network: 20, all: 1_000, address: 5 };
        let mut limit = RateLimit::<32, 32>::default();
        let greedy = IpAddr::from([10, 1, 1, 1]);
        let mut asks = |now: u64, to: IpAddr| limit.admits(&SECRET, rates, Instant::from_micros(now), to);
        for second in 1..=20_u64 {
            let mut answered = 0;
            for milli in 0..1_000_u64 {
                let now = second * 1_000_000 + milli * 1_000;
                asks(now, greedy);
                // Another network sends requests from arbitrarily many addresses.
                for host in 0..4 {
                    asks(
                        now,
                        IpAddr::from([0x2001, 0xDB8, 0, 7, 0, 0, host, u16::try_from(milli).unwrap_or(0)]),
                    );
                }
                if milli % 500 == 499 {
                    answered += u8::from(asks(now, IpAddr::from([10, 1, 1, 2])));
                }
            }
            assert_eq!(answered, 2, "second {second}");
        }
    }

    #[test]
    fn a_ration_refills_once_per_period() {
        let allowance = Allowance { events: 3, period: Duration::from_secs(10) };
        let mut ration = Ration::default();
        let mut taken = |seconds: u64| {
            let now = Instant::from_micros(seconds * 1_000_000);
            let taken = (0..9).filter(|_| ration.take(allowance, now)).count();
            assert!(!ration.is_left(allowance, now));
            taken
        };
        assert_eq!([5, 5, 6, 8, 9, 15, 99, 100].map(&mut taken), [3, 0, 0, 0, 1, 2, 3, 0]);
        // Refused events take nothing, regardless of when they were refused.
        assert_eq!((100..120).map(taken).sum::<usize>(), 6);
        let never = Allowance { events: 0, ..allowance };
        assert!(!Ration::default().is_left(never, Instant::from_micros(u64::MAX)));
        let longest = Allowance { events: u16::MAX, period: Duration::MAX };
        assert!(Ration::default().take(longest, Instant::from_micros(u64::MAX)));
    }

    #[test]
    fn a_refunded_event_is_available_again() {
        let allowance = Allowance { events: 3, period: Duration::from_secs(10) };
        let (mut ration, now) = (Ration::default(), Instant::from_micros(1_000_000));
        for _ in 0..100 {
            assert!(ration.take(allowance, now));
            ration.refund(now, now);
        }
        // A refund never raises the ration above the allowance.
        ration.refund(now, now);
        assert_eq!((0..9).filter(|_| ration.take(allowance, now)).count(), 3);
        ration.refund(now, now);
        assert_eq!((0..9).filter(|_| ration.take(allowance, now)).count(), 1);
    }

    #[test]
    fn a_refund_excludes_the_part_already_refilled() {
        let allowance = Allowance { events: 4, period: Duration::from_secs(8) };
        let at = |seconds: u64| Instant::from_micros(seconds * 1_000_000);
        let takes = |ration: &mut Ration, now| (0..9).filter(|_| ration.take(allowance, now)).count();
        let mut ration = Ration::default();
        assert!(ration.take(allowance, at(100)));
        // The allowance refills one event in two seconds, so after three seconds it is full again.
        assert_eq!(takes(&mut ration, at(103)), 4);
        ration.refund(at(100), at(103));
        assert_eq!(takes(&mut ration, at(103)), 0);
        // After one second, half of the event has been refilled, and the refund returns the other half.
        let mut ration = Ration::default();
        assert!(ration.take(allowance, at(100)));
        assert_eq!(takes(&mut ration, at(101)), 3);
        ration.refund(at(100), at(101));
        assert_eq!(takes(&mut ration, at(101)), 1);
    }

    #[test]
    fn a_total_rate_of_zero_blocks_every_response() {
        let rates = Rates { network: 5, all: 0, address: 0 };
        let to = IpAddr::from([127, 0, 0, 1]);
        assert!(!<RateLimit>::default().admits(&SECRET, rates, Instant::ZERO, to));
    }

    #[test]
    fn addresses_of_one_network_have_one_rate_limit_key() {
        let same = |left: &str, right: &str| {
            let [left, right] = [left, right].map(|text| network(text.parse().expect("a literal address")));
            left == right
        };
        assert!(same("10.0.1.2", "10.0.1.255") && !same("10.0.1.2", "10.0.2.2"));
        assert!(same("10.0.1.2", "::ffff:10.0.1.255") && !same("::ffff:10.0.1.2", "::ffff:10.0.2.2"));
        assert!(same("2001:db8::1", "2001:db8::f:1") && !same("2001:db8::1", "2001:db8:0:1::1"));
    }
}
