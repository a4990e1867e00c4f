//! Places that are counted, so that one party takes no more than its share: those of a site, whose addresses it may have.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A site has at most one of so many places that are free. So `n` sites that take all they get leave a share of `4 / (4 + n)` to
/// others, and none of these sites has to be known.
pub(crate) const FREE_SHARE: usize = 4;

/// How many places each address has, or each site.
#[derive(Debug, Default)]
pub(crate) struct Places(HashMap<IpAddr, usize>);

impl Places {
    /// Whether one with so many places at most may have one more. It may always have a first one.
    pub(crate) fn admits(&self, of: IpAddr, most: usize) -> bool {
        self.0.get(&of).is_none_or(|taken| *taken < most)
    }

    pub(crate) fn take(&mut self, of: IpAddr) {
        *self.0.entry(of).or_default() += 1;
    }

    pub(crate) fn give_back(&mut self, of: IpAddr) {
        if let Some(taken) = self.0.get_mut(&of) {
            *taken -= 1;
            if *taken == 0 {
                self.0.remove(&of);
            }
        }
    }

    /// How many places are taken.
    #[cfg(test)]
    pub(crate) fn taken(&self) -> usize {
        self.0.values().sum()
    }
}

/// The site of an address, as its first one: a /24 of IPv4, and a /48 of IPv6, which hosters give a customer.
pub(crate) fn site(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V4(ip) => Ipv4Addr::from_bits(ip.to_bits() & !0xFF).into(),
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() & !(u128::MAX >> 48)).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_place_is_there_and_more_up_to_the_limit_until_they_are_given_back() {
        let (mut places, ip) = (Places::default(), IpAddr::from([192, 0, 2, 1]));
        assert!(places.admits(ip, 0));
        places.take(ip);
        assert!(!places.admits(ip, 0) && !places.admits(ip, 1) && places.admits(ip, 2));
        places.take(ip);
        assert!(!places.admits(ip, 2));
        (0..3).for_each(|_| places.give_back(ip));
        assert!(places.admits(ip, 0) && places.0.is_empty());
    }

    #[test]
    fn a_site_is_a_24_of_ipv4_in_any_notation_and_a_48_of_ipv6() {
        let site = |ip: &str| site(ip.parse().unwrap()).to_string();
        assert_eq!(["192.0.2.9", "::ffff:192.0.2.200"].map(site), ["192.0.2.0"; 2]);
        assert_eq!(site("2001:db8:1:2::3"), "2001:db8:1::");
    }
}
