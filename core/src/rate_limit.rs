//! Limits of answers to peers without a connection, since an answer may be longer than its question and the question's source may
//! be forged; and the unit by which limits for each host count.

use core::hash::Hasher;
use core::net::{IpAddr, Ipv6Addr};
use core::time::Duration;

use siphasher::sip::SipHasher13;

use crate::time::{Instant, micros};

/// Tokens that fill up with time, at most a second's worth.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bucket {
    /// Thousandths of an answer.
    taken: u32,
    at: u32,
}

impl Bucket {
    /// Fills it up to now; whether a token is left.
    pub(crate) fn fill_up(&mut self, rate: u16, now: Instant) -> bool {
        let now = u32::try_from(now.as_millis() & u64::from(u32::MAX)).unwrap_or(0);
        let refilled = now.wrapping_sub(self.at).min(1_000) * u32::from(rate);
        self.at = now;
        self.taken = self.taken.saturating_sub(refilled);
        self.taken + 1_000 <= u32::from(rate) * 1_000
    }

    /// Whether a token may be taken in advance after [`fill_up`](Self::fill_up), of half a second's worth.
    const fn has_advance(&self, rate: u16) -> bool {
        self.taken.saturating_add(1_000) <= rate as u32 * 1_500
    }

    /// Takes a token, of which one is left after [`fill_up`](Self::fill_up).
    pub(crate) const fn spend(&mut self) {
        self.taken = self.taken.saturating_add(1_000);
    }

    /// Takes a token; false when none is left.
    pub(crate) fn take(&mut self, rate: u16, now: Instant) -> bool {
        let possible = self.fill_up(rate, now);
        if possible {
            self.spend();
        }
        possible
    }
}

/// How often something may happen within a period.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowance {
    pub(crate) events: u16,
    /// At most 71 minutes; more counts as that.
    pub(crate) period: Duration,
}

/// What is left of an [`Allowance`]. It fills up evenly, so that all of it is there once and again in each period.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ration {
    /// Events times the microseconds of the period, of which each microsecond gives back as many as there are events:
    /// no machine has to divide.
    spent: u64,
    at: Instant,
    /// The allowance of the last event.
    period: u32,
    events: u16,
}

impl Ration {
    /// What will have been spent after another event, if it may happen.
    fn after_another(&self, allowance: Allowance, now: Instant) -> Option<u64> {
        let (events, period) = (u64::from(allowance.events), u64::from(micros(allowance.period)));
        let refilled = u64::from(now.micros_since(self.at)) * events;
        let spent = self.spent.saturating_sub(refilled) + period;
        (spent <= events * period).then_some(spent)
    }

    /// Whether it may happen once more.
    pub(crate) fn is_left(&self, allowance: Allowance, now: Instant) -> bool {
        self.after_another(allowance, now).is_some()
    }

    /// Takes one event; false when none is left.
    pub(crate) fn take(&mut self, allowance: Allowance, now: Instant) -> bool {
        let after = self.after_another(allowance, now);
        if let Some(spent) = after {
            *self = Self { spent, at: now, period: micros(allowance.period), events: allowance.events };
        }
        after.is_some()
    }

    /// Gives back one event that was taken at this time: what has not been filled up since, at least for this event. The rest
    /// is there again already, and may have been taken for others.
    pub(crate) fn give_back(&mut self, taken_at: Instant, now: Instant) {
        let refilled = u64::from(now.micros_since(taken_at)) * u64::from(self.events);
        self.spent = self.spent.saturating_sub(u64::from(self.period).saturating_sub(refilled));
    }
}

/// Answers a second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rates {
    pub(crate) all: u16,
    pub(crate) network: u16,
    /// What an address is sure of within its network; 0 if all of them share what that gets.
    pub(crate) address: u16,
}

/// Groups of addresses that are sure of a part of what their network gets. With as many, those that the groups of networks
/// let through in a second are too few to empty the part of every group.
pub(crate) const ADDRESS_GROUPS: usize = if cfg!(feature = "alloc") { 256 } else { 32 };

/// A bucket for each of a fixed number of groups of networks or addresses, by a keyed hash.
#[derive(Debug)]
pub(crate) struct HashedBuckets<const GROUPS: usize>([Bucket; GROUPS]);

impl<const GROUPS: usize> Default for HashedBuckets<GROUPS> {
    fn default() -> Self {
        Self([Bucket::default(); GROUPS])
    }
}

impl<const GROUPS: usize> HashedBuckets<GROUPS> {
    /// The bucket of the group of this network.
    pub(crate) fn of(&mut self, secret: &[u8; 16], network: u128) -> Option<&mut Bucket> {
        let mut hasher = SipHasher13::new_with_key(secret);
        hasher.write_u128(network);
        let place = usize::try_from(hasher.finish().checked_rem(GROUPS as u64)?).unwrap_or(0);
        self.0.get_mut(place)
    }
}

/// A bucket for all, one for each group of networks, and one for each group of addresses.
///
/// What a network gets is rationed fairly among its addresses: one that has had less than its share takes in advance what
/// flows in next, which then those have to wait for that have had more. An address that is alone gets all.
#[derive(Debug, Default)]
pub(crate) struct RateLimit<const NETWORKS: usize = 32, const ADDRESSES: usize = 0> {
    all: Bucket,
    networks: HashedBuckets<NETWORKS>,
    addresses: HashedBuckets<ADDRESSES>,
}

impl<const NETWORKS: usize, const ADDRESSES: usize> RateLimit<NETWORKS, ADDRESSES> {
    /// Whether `to` may have another answer.
    pub(crate) fn admits(&mut self, secret: &[u8; 16], rates: Rates, now: Instant, to: IpAddr) -> bool {
        let Some(network) = self.networks.of(secret, network(to)) else { return false };
        let has_token = network.fill_up(rates.network, now);
        if !self.all.fill_up(rates.all, now) || !has_token && !network.has_advance(rates.network) {
            return false;
        }
        // What is not answered takes nothing of anyone's part.
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

/// The bits of an address, and one more that no network has.
const fn address_bits(address: IpAddr) -> u128 {
    match address.to_canonical() {
        IpAddr::V4(ip) => ip.to_bits() as u128 | 1 << 64,
        IpAddr::V6(ip) => ip.to_bits(),
    }
}

/// The network of an address: 24 bits of IPv4, 64 of IPv6. On a socket for both, IPv4 addresses stand inside IPv6, all
/// in one network of that.
pub(crate) const fn network(address: IpAddr) -> u128 {
    match address.to_canonical() {
        IpAddr::V4(ip) => (ip.to_bits() >> 8) as u128,
        IpAddr::V6(ip) => ip.to_bits() & !(u64::MAX as u128),
    }
}

/// The part of an IPv6 address that its host does not choose.
const PREFIX_V6: u128 = !(u64::MAX as u128);

/// The addresses that one host surely has: one of IPv4, or all of IPv6 with the same first 64 bits, since a host chooses the
/// rest as it likes. Limits for each host count by this.
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
    /// Returns the prefix of an address.
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
    use super::*;

    const SECRET: [u8; 16] = [3; 16];

    #[test]
    fn a_network_gets_its_share_and_all_together_no_more_than_theirs() {
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
    fn an_address_that_asks_without_end_leaves_its_neighbours_their_share() {
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
                // Two others ask once a second, like a list of servers that is open.
                assert_eq!(asks(now + 1, 2, usize::from(tenth == 3)), usize::from(tenth == 3), "{now}");
                assert_eq!(asks(now + 1, 3, usize::from(tenth == 7)), usize::from(tenth == 7), "{now}");
            }
        }
        // What they leave is for the first one.
        assert!((330..=390).contains(&greedy), "{greedy}");
    }

    #[test]
    fn a_network_that_asks_without_end_takes_nothing_of_the_share_of_others() {
        let rates = Rates { network: 20, all: 1_000, address: 5 };
        let mut limit = RateLimit::<32, 32>::default();
        let greedy = IpAddr::from([10, 1, 1, 1]);
        let mut asks = |now: u64, to: IpAddr| limit.admits(&SECRET, rates, Instant::from_micros(now), to);
        for second in 1..=20_u64 {
            let mut answered = 0;
            for milli in 0..1_000_u64 {
                let now = second * 1_000_000 + milli * 1_000;
                asks(now, greedy);
                // Another network asks from as many addresses as it likes.
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
    fn a_ration_is_there_once_and_again_in_each_period() {
        let allowance = Allowance { events: 3, period: Duration::from_secs(10) };
        let mut ration = Ration::default();
        let mut taken = |seconds: u64| {
            let now = Instant::from_micros(seconds * 1_000_000);
            let taken = (0..9).filter(|_| ration.take(allowance, now)).count();
            assert!(!ration.is_left(allowance, now));
            taken
        };
        assert_eq!([5, 5, 6, 8, 9, 15, 99, 100].map(&mut taken), [3, 0, 0, 0, 1, 2, 3, 0]);
        // What was refused takes nothing, whenever that was.
        assert_eq!((100..120).map(taken).sum::<usize>(), 6);
        let never = Allowance { events: 0, ..allowance };
        assert!(!Ration::default().is_left(never, Instant::from_micros(u64::MAX)));
        let longest = Allowance { events: u16::MAX, period: Duration::MAX };
        assert!(Ration::default().take(longest, Instant::from_micros(u64::MAX)));
    }

    #[test]
    fn an_event_that_is_given_back_is_there_again() {
        let allowance = Allowance { events: 3, period: Duration::from_secs(10) };
        let (mut ration, now) = (Ration::default(), Instant::from_micros(1_000_000));
        for _ in 0..100 {
            assert!(ration.take(allowance, now));
            ration.give_back(now, now);
        }
        // No more than that are there, whatever is given back.
        ration.give_back(now, now);
        assert_eq!((0..9).filter(|_| ration.take(allowance, now)).count(), 3);
        ration.give_back(now, now);
        assert_eq!((0..9).filter(|_| ration.take(allowance, now)).count(), 1);
    }

    #[test]
    fn an_event_that_is_given_back_late_leaves_those_of_others_taken() {
        let allowance = Allowance { events: 4, period: Duration::from_secs(8) };
        let at = |seconds: u64| Instant::from_micros(seconds * 1_000_000);
        let takes = |ration: &mut Ration, now| (0..9).filter(|_| ration.take(allowance, now)).count();
        let mut ration = Ration::default();
        assert!(ration.take(allowance, at(100)));
        // Two seconds later that is filled up.
        assert_eq!(takes(&mut ration, at(103)), 4);
        ration.give_back(at(100), at(103));
        assert_eq!(takes(&mut ration, at(103)), 0);
        // After one second half of it is, and half is given back.
        let mut ration = Ration::default();
        assert!(ration.take(allowance, at(100)));
        assert_eq!(takes(&mut ration, at(101)), 3);
        ration.give_back(at(100), at(101));
        assert_eq!(takes(&mut ration, at(101)), 1);
    }

    #[test]
    fn a_rate_of_zero_answers_nobody() {
        let rates = Rates { network: 5, all: 0, address: 0 };
        let to = IpAddr::from([127, 0, 0, 1]);
        assert!(!<RateLimit>::default().admits(&SECRET, rates, Instant::ZERO, to));
    }

    #[test]
    fn the_host_part_of_an_address_does_not_count() {
        let same = |left: &str, right: &str| {
            let [left, right] = [left, right].map(|text| network(text.parse().expect("a literal address")));
            left == right
        };
        assert!(same("10.0.1.2", "10.0.1.255") && !same("10.0.1.2", "10.0.2.2"));
        assert!(same("10.0.1.2", "::ffff:10.0.1.255") && !same("::ffff:10.0.1.2", "::ffff:10.0.2.2"));
        assert!(same("2001:db8::1", "2001:db8::f:1") && !same("2001:db8::1", "2001:db8:0:1::1"));
    }
}
