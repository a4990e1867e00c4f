//! How many answers clients get whose addresses are not proved. Memory is fixed: a forged source costs none.

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::time::Instant;

/// Groups of networks that have a ration each; which networks share one nobody can know.
const GROUPS: usize = 4_096;

/// Answers a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rates {
    /// To all networks together.
    pub(crate) all: u32,
    /// To a network: 24 bits of IPv4, 64 of IPv6, or as many as the caller leaves of an address.
    pub(crate) network: u32,
}

/// A second's worth of tokens.
#[derive(Debug, Clone, Copy, Default)]
struct Bucket {
    /// Thousandths of an answer.
    taken: u64,
    /// In milliseconds since the start.
    at: u64,
}

impl Bucket {
    fn take(&mut self, rate: u32, now: u64) -> bool {
        let rate = u64::from(rate);
        let passed = now.saturating_sub(self.at).min(1_000);
        self.at = self.at.max(now);
        self.taken = self.taken.saturating_sub(passed * rate);
        let possible = self.taken + 1_000 <= rate * 1_000;
        if possible {
            self.taken += 1_000;
        }
        possible
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Rations {
    rates: Rates,
    start: Instant,
    all: Bucket,
    groups: Box<[Bucket]>,
    hasher: RandomState,
}

impl Rations {
    pub(crate) fn new(rates: Rates, start: Instant) -> Self {
        Self {
            rates,
            start,
            all: Bucket::default(),
            groups: vec![Bucket::default(); GROUPS].into(),
            hasher: RandomState::new(),
        }
    }

    /// Whether `to` gets another answer.
    pub(crate) fn admits(&mut self, now: Instant, to: IpAddr) -> bool {
        let millis = now.saturating_duration_since(self.start).as_millis() as u64;
        let place = self.hasher.hash_one(network(to)) % GROUPS as u64;
        let group = &mut self.groups[place as usize];
        group.take(self.rates.network, millis) && self.all.take(self.rates.all, millis)
    }
}

/// The network of an address. On a socket for both versions addresses of IPv4 stand inside IPv6, all in one network of that.
const fn network(address: IpAddr) -> u128 {
    match address.to_canonical() {
        IpAddr::V4(ip) => (ip.to_bits() >> 8) as u128,
        IpAddr::V6(ip) => ip.to_bits() & !(u64::MAX as u128),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_network_gets_its_share_and_all_together_no_more_than_theirs() {
        let start = Instant::now();
        let mut rations = Rations::new(Rates { network: 5, all: 12 }, start);
        let mut count = |at: u64, network: u8| {
            let now = start + Duration::from_millis(at);
            let to = |host| IpAddr::from([10, network, 0, host]);
            (0..100).filter(|host| rations.admits(now, to(*host))).count()
        };
        assert_eq!(count(0, 1), 5);
        assert_eq!(count(0, 1), 0);
        assert_eq!((2..50).map(|network| count(0, network)).sum::<usize>(), 7);
        assert_eq!(count(200, 1), 1);
        assert_eq!(count(100, 1), 0);
        assert_eq!(count(900_000, 1), 5);
    }

    #[test]
    fn a_rate_of_zero_answers_nobody() {
        let start = Instant::now();
        let mut rations = Rations::new(Rates { network: 5, all: 0 }, start);
        assert!(!rations.admits(start + Duration::from_secs(9), [127, 0, 0, 1].into()));
    }
}
