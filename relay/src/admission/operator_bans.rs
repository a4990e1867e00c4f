//! Bans that an operator makes while the relay runs, beside those of the file.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ipnet::IpNet;
use thiserror::Error;

/// The most of them at a time.
const BANS_MAX: usize = 10_000;

/// There are as many bans as there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("there are {BANS_MAX} bans: lift some, or write them to the file of admission.bans")]
pub(crate) struct TooManyBans;

/// See the module.
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
