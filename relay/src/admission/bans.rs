//! Banned addresses: those of the file, and bans that an operator makes beside them while the relay runs.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ipnet::IpNet;
use thiserror::Error;

use crate::syntax;

/// Addresses and networks, looked up in logarithmic time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Bans {
    /// The first and the last address of each range, in order; ranges do not overlap.
    ranges: Vec<(IpAddr, IpAddr)>,
}

impl Bans {
    /// Reads one address or network per line. What follows a `#` is a comment.
    ///
    /// The error is the number of the line, counted from 1, and what is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Self, (usize, String)> {
        let mut networks = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let entry = line.split('#').next().unwrap_or_default().trim();
            if !entry.is_empty() {
                networks.push(syntax::network(entry).map_err(|reason| (index + 1, reason))?);
            }
        }
        let ranges = IpNet::aggregate(&networks).into_iter().map(|net| (net.network(), net.broadcast()));
        let mut ranges: Vec<_> = ranges.collect();
        ranges.sort_unstable();
        Ok(Self { ranges })
    }

    /// Whether an address is banned.
    pub(crate) fn contains(&self, ip: IpAddr) -> bool {
        let after = self.ranges.partition_point(|(first, _)| *first <= ip);
        let before = after.checked_sub(1).and_then(|index| self.ranges.get(index));
        before.is_some_and(|(_, last)| ip <= *last)
    }
}

/// The most of them at a time.
const BANS_MAX: usize = 10_000;

/// There are as many bans as there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("there are {BANS_MAX} bans: lift some, or write them to the file of admission.bans")]
pub(crate) struct TooManyBans;

/// Bans that an operator makes while the relay runs, beside those of the file.
#[derive(Debug, Default)]
pub(super) struct OperatorBans(Mutex<BTreeMap<IpNet, Option<Instant>>>);

impl OperatorBans {
    /// Bans a network until a time; without one until the relay ends. A later ban replaces an earlier one of the same network.
    pub(super) fn add(
        &self,
        now: Instant,
        network: IpNet,
        until: Option<Instant>,
    ) -> Result<(), TooManyBans> {
        let mut bans = self.lock();
        let network = canonical(network);
        if bans.len() >= BANS_MAX && !bans.contains_key(&network) {
            forget_over(&mut bans, now);
            if bans.len() >= BANS_MAX {
                return Err(TooManyBans);
            }
        }
        bans.insert(network, until);
        Ok(())
    }

    /// Lifts the ban of a network; false if there is none.
    pub(super) fn remove(&self, now: Instant, network: IpNet) -> bool {
        let mut bans = self.lock();
        forget_over(&mut bans, now);
        bans.remove(&canonical(network)).is_some()
    }

    /// Whether an address is banned.
    pub(super) fn contains(&self, now: Instant, ip: IpAddr) -> bool {
        let bans = self.lock();
        if bans.is_empty() {
            return false;
        }
        let ip = ip.to_canonical();
        let bits = if ip.is_ipv4() { 32 } else { 128 };
        (0..=bits).filter_map(|length| IpNet::new(ip, length).ok()).any(|network| {
            let until = bans.get(&network.trunc());
            until.is_some_and(|until| until.is_none_or(|until| now < until))
        })
    }

    /// All bans, with the time that is left of each.
    pub(super) fn list(&self, now: Instant) -> Vec<(IpNet, Option<Duration>)> {
        let mut bans = self.lock();
        forget_over(&mut bans, now);
        let left = |until: &Option<Instant>| until.map(|until| until.saturating_duration_since(now));
        bans.iter().map(|(network, until)| (*network, left(until))).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<IpNet, Option<Instant>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn forget_over(bans: &mut BTreeMap<IpNet, Option<Instant>>, now: Instant) {
    bans.retain(|_, until| until.is_none_or(|until| now < until));
}

/// The network as clients have it: addresses of IPv4 that are mapped into IPv6 are addresses of IPv4.
pub(crate) fn canonical(network: IpNet) -> IpNet {
    let network = network.trunc();
    match (network.addr().to_canonical(), network.prefix_len().checked_sub(96)) {
        (ip @ IpAddr::V4(_), Some(length)) if network.addr().is_ipv6() => {
            IpNet::new(ip, length).unwrap_or(network)
        }
        _ => network,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_networks_are_banned() {
        let text =
            "# comment\n192.0.2.7\n\n198.51.100.0/24 # a reason\r\n198.51.100.9\n2001:db8::/56\n0.0.0.0/32\n";
        let bans = Bans::parse(text).unwrap();
        for banned in ["192.0.2.7", "198.51.100.0", "198.51.100.255", "2001:db8:0:ff::1", "0.0.0.0"] {
            assert!(bans.contains(banned.parse().unwrap()), "{banned}");
        }
        for free in
            ["192.0.2.6", "192.0.2.8", "198.51.99.255", "198.51.101.0", "2001:db8:0:100::", "::", "0.0.0.1"]
        {
            assert!(!bans.contains(free.parse().unwrap()), "{free}");
        }
        assert!(!Bans::default().contains("192.0.2.7".parse().unwrap()));
    }

    #[test]
    fn a_wrong_line_is_named() {
        assert_eq!(Bans::parse("192.0.2.1\n\nexample.org\n").unwrap_err().0, 3);
        assert_eq!(Bans::parse("192.0.2.1/33").unwrap_err().0, 1);
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_ban_holds_for_its_network_and_its_time() {
        let (bans, now) = (OperatorBans::default(), Instant::now());
        assert!(!bans.contains(now, ip("192.0.2.7")));
        bans.add(now, "192.0.2.0/24".parse().unwrap(), Some(now + Duration::from_secs(60))).unwrap();
        bans.add(now, "2001:db8::/56".parse().unwrap(), None).unwrap();
        bans.add(now, "::ffff:198.51.100.7/128".parse().unwrap(), None).unwrap();
        for banned in ["192.0.2.7", "::ffff:192.0.2.255", "2001:db8:0:ff::1", "198.51.100.7"] {
            assert!(bans.contains(now, ip(banned)), "{banned}");
        }
        for free in ["192.0.3.1", "2001:db8:0:100::1", "198.51.100.8"] {
            assert!(!bans.contains(now, ip(free)), "{free}");
        }
        let later = now + Duration::from_secs(60);
        assert!(!bans.contains(later, ip("192.0.2.7")), "its time is over");
        assert!(bans.contains(later, ip("2001:db8::1")));
        assert_eq!(bans.list(later).len(), 2);
        assert!(bans.remove(later, "2001:db8::/56".parse().unwrap()));
        assert!(!bans.remove(later, "2001:db8::/56".parse().unwrap()));
        assert!(!bans.contains(later, ip("2001:db8::1")));
    }

    #[test]
    fn there_is_a_most_of_bans() {
        let (bans, now) = (OperatorBans::default(), Instant::now());
        let network = |number: usize| IpNet::from(IpAddr::from((number as u32).to_be_bytes()));
        for number in 0..BANS_MAX {
            bans.add(now, network(number), (number == 0).then_some(now + Duration::from_secs(1))).unwrap();
        }
        assert_eq!(bans.add(now, network(BANS_MAX), None), Err(TooManyBans));
        assert_eq!(bans.add(now, network(1), None), Ok(()), "a ban that is there can be made again");
        let later = now + Duration::from_secs(1);
        assert_eq!(bans.add(later, network(BANS_MAX), None), Ok(()), "one is over");
    }
}
