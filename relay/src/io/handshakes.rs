//! The handshakes of QUIC that are under way: limited together, and by network where a client has proved its address.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::sites::{FREE_SHARE, Places, site};

/// The most at a time.
const TOTAL_MAX: usize = 256;

/// With so many a client proves its address before it gets memory, which costs it a round trip.
const UNPROVEN_MAX: usize = 32;

/// The most of one address.
const OF_ADDRESS_MAX: usize = 32;

/// See the module. Clones have the same places.
#[derive(Clone, Debug, Default)]
pub(super) struct Handshakes(Arc<Mutex<Taken>>);

#[derive(Debug, Default)]
struct Taken {
    taken: usize,
    of_address: Places,
    of_network: Places,
}

/// The place of one handshake, which is free again once this is dropped.
#[derive(Debug)]
pub(super) struct Handshake {
    places: Handshakes,
    proven: Option<IpAddr>,
}

impl Handshakes {
    /// Whether there are so many that a client has to prove its address first.
    pub(super) fn want_proof(&self) -> bool {
        self.lock().taken >= UNPROVEN_MAX
    }

    /// Gives a client its place, if there is one. An address that is not proved does not count, because a forger would
    /// take the places of others.
    pub(super) fn begin(&self, proven: Option<IpAddr>) -> Option<Handshake> {
        let proven = proven.map(|ip| ip.to_canonical());
        let mut places = self.lock();
        let free = TOTAL_MAX.checked_sub(places.taken + 1)?;
        if let Some(ip) = proven {
            let has_place = places.of_address.admits(ip, OF_ADDRESS_MAX)
                && places.of_network.admits(site(ip), free / FREE_SHARE + 1);
            if !has_place {
                return None;
            }
            places.of_network.take(site(ip));
            places.of_address.take(ip);
        }
        places.taken += 1;
        drop(places);
        Some(Handshake { places: self.clone(), proven })
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        // The counts are right between any two changes.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Handshake {
    fn drop(&mut self) {
        let mut places = self.places.lock();
        places.taken = places.taken.saturating_sub(1);
        if let Some(ip) = self.proven {
            places.of_network.give_back(site(ip));
            places.of_address.give_back(ip);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> Option<IpAddr> {
        Some(text.parse().unwrap())
    }

    #[test]
    fn an_address_has_a_limit_and_a_network_leaves_most_places_to_others() {
        let handshakes = Handshakes::default();
        let mut taken: Vec<_> = (0..100).filter_map(|_| handshakes.begin(ip("192.0.2.1"))).collect();
        assert_eq!(taken.len(), OF_ADDRESS_MAX);
        taken.extend((0..=255).filter_map(|last| handshakes.begin(ip(&format!("192.0.2.{last}")))));
        assert_eq!(taken.len(), 52);
        // Whatever notation a socket has for it.
        assert!(handshakes.begin(ip("::ffff:192.0.2.9")).is_none());
        assert!(handshakes.begin(ip("198.51.100.1")).is_some());
        taken.clear();
        assert!(handshakes.begin(ip("192.0.2.1")).is_some());
        let places = handshakes.lock();
        assert!(places.taken == 0 && places.of_address.taken() == 0 && places.of_network.taken() == 0);
    }

    #[test]
    fn networks_that_take_all_they_get_leave_places_to_others() {
        let handshakes = Handshakes::default();
        // Four networks of IPv4, and four of IPv6, whose addresses are as many as one likes.
        let mut taken = Vec::new();
        for host in 0..256 {
            for network in 0..4 {
                taken.extend(handshakes.begin(ip(&format!("10.0.{network}.{host}"))));
                taken.extend(handshakes.begin(ip(&format!("2001:db8:{network}:{host:x}::1"))));
            }
        }
        assert!((130..200).contains(&taken.len()), "{}", taken.len());
        for other in 0..30 {
            taken.push(handshakes.begin(ip(&format!("172.16.{other}.1"))).expect("a place"));
        }
    }

    #[test]
    fn many_handshakes_want_proof_and_all_have_a_limit() {
        let handshakes = Handshakes::default();
        let mut taken = Vec::new();
        while !handshakes.want_proof() {
            taken.push(handshakes.begin(None).unwrap());
        }
        assert_eq!(taken.len(), UNPROVEN_MAX);
        let networks = (0..=255).map(|third| ip(&format!("10.0.{third}.1")));
        taken.extend(networks.filter_map(|network| handshakes.begin(network)));
        assert_eq!(taken.len(), TOTAL_MAX);
        assert!(handshakes.begin(None).is_none());
    }
}
