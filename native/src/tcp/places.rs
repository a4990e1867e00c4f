//! Places for the connections that others open: so many in all, for each address, and for each network.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rakwire::endpoint::{ClientLimits, Origin};

use super::options::Options;

/// Why there is no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoPlace {
    /// All are taken.
    Full,
    /// The address has as many as one may have.
    FullForAddress,
    /// The network has as many as one may have.
    FullForNetwork,
}

/// The places of an endpoint.
#[derive(Debug)]
pub(super) struct Places {
    max: usize,
    limits: ClientLimits,
    taken: Mutex<Taken>,
}

/// What is taken; an address or a network without a place is in no table, so that they have no more entries than there are
/// places.
#[derive(Debug, Default)]
struct Taken {
    all: usize,
    by_address: HashMap<u128, usize>,
    by_network: HashMap<u128, usize>,
}

/// A place, which is free again once this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    places: Arc<Places>,
    /// There is none if the client has an address without limits.
    origin: Option<Origin>,
}

impl Places {
    pub(super) fn new(options: &Options) -> Arc<Self> {
        let max_incoming = u16::try_from(options.max_incoming).unwrap_or(u16::MAX);
        let limits = ClientLimits::new(max_incoming, options.max_per_address, options.max_per_network);
        Arc::new(Self { max: options.max_incoming, limits, taken: Mutex::default() })
    }

    /// Takes a place for a client.
    pub(super) fn take(self: &Arc<Self>, client: SocketAddr) -> Result<Place, NoPlace> {
        let origin = Origin::of(client.ip());
        let mut taken = self.lock();
        if taken.all >= self.max {
            return Err(NoPlace::Full);
        }
        if let Some(origin) = origin {
            if is_full(&taken.by_address, origin.address, self.limits.address) {
                return Err(NoPlace::FullForAddress);
            }
            if is_full(&taken.by_network, origin.network, self.limits.network) {
                return Err(NoPlace::FullForNetwork);
            }
            *taken.by_address.entry(origin.address).or_default() += 1;
            *taken.by_network.entry(origin.network).or_default() += 1;
        }
        taken.all += 1;
        drop(taken);
        Ok(Place { places: Arc::clone(self), origin })
    }

    pub(super) fn taken(&self) -> usize {
        self.lock().all
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a part of the clients has as many places as it may have. The highest limit is none.
fn is_full(taken: &HashMap<u128, usize>, part: u128, limit: u16) -> bool {
    limit < u16::MAX && taken.get(&part).is_some_and(|taken| *taken >= usize::from(limit.max(1)))
}

fn leave(taken: &mut HashMap<u128, usize>, part: u128) {
    if let Some(of_part) = taken.get_mut(&part) {
        *of_part = of_part.saturating_sub(1);
        if *of_part == 0 {
            taken.remove(&part);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.lock();
        taken.all = taken.all.saturating_sub(1);
        if let Some(origin) = self.origin {
            leave(&mut taken.by_address, origin.address);
            leave(&mut taken.by_network, origin.network);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(ip: &str) -> SocketAddr {
        SocketAddr::new(ip.parse().expect("an address"), 19_132)
    }

    fn places(max: usize, per_address: Option<u16>, per_network: Option<u16>) -> Arc<Places> {
        let mut options = Options::server(max);
        (options.max_per_address, options.max_per_network) = (per_address, per_network);
        Places::new(&options)
    }

    impl Places {
        fn entries(&self) -> (usize, usize) {
            let taken = self.lock();
            (taken.by_address.len(), taken.by_network.len())
        }
    }

    #[test]
    fn an_address_has_its_share_whatever_its_form() {
        let places = places(10, Some(2), None);
        for (one, same, other) in [
            ("192.0.2.1", "::ffff:192.0.2.1", "192.0.2.2"),
            ("2001:db8::1", "2001:db8::ffff:0:0:2", "2001:db8:0:1::1"),
        ] {
            let kept = [places.take(client(one)), places.take(client(same))];
            assert!(kept.iter().all(Result::is_ok));
            for ip in [one, same] {
                assert_eq!(places.take(client(ip)).err(), Some(NoPlace::FullForAddress), "{ip}");
            }
            assert!(places.take(client(other)).is_ok());
            drop(kept);
            assert!(places.take(client(same)).is_ok(), "free again");
        }
        assert_eq!((places.taken(), places.entries()), (0, (0, 0)));
    }

    #[test]
    fn a_network_has_its_share_whatever_its_addresses() {
        let places = places(10, None, Some(2));
        for (members, other) in [
            (["192.0.2.1", "192.0.2.2", "::ffff:192.0.2.3"], "192.0.3.1"),
            (["2001:db8::1", "2001:db8:0:1::1", "2001:db8:0:2::1"], "2001:db8:1::1"),
        ] {
            let [first, second, third] = members;
            let kept = [first, second].map(|ip| places.take(client(ip)).expect("a place"));
            assert_eq!(places.take(client(third)).err(), Some(NoPlace::FullForNetwork), "{third}");
            assert!(places.take(client(other)).is_ok());
            drop(kept);
            assert!(places.take(client(third)).is_ok(), "free again");
        }
        assert_eq!((places.taken(), places.entries()), (0, (0, 0)));
    }

    #[test]
    fn by_default_others_have_a_quarter_of_the_places_or_an_eighth() {
        let places = places(16, None, None);
        let taken: Vec<_> = (0..12).map(|_| places.take(client("192.0.2.1")).expect("a place")).collect();
        assert_eq!(places.take(client("192.0.2.1")).err(), Some(NoPlace::FullForAddress));
        let neighbours = ["192.0.2.2", "192.0.2.3"].map(|ip| places.take(client(ip)).expect("a place"));
        assert_eq!(places.take(client("192.0.2.4")).err(), Some(NoPlace::FullForNetwork));
        assert!(places.take(client("198.51.100.1")).is_ok());
        drop((taken, neighbours));
    }

    #[test]
    fn addresses_of_the_operator_have_all_places() {
        let places = places(40, Some(1), Some(1));
        let local = ["127.0.0.1", "10.1.2.3", "fd00::1", "::1"];
        let kept: Vec<_> = local.iter().cycle().take(40).map(|ip| places.take(client(ip))).collect();
        assert!(kept.iter().all(Result::is_ok));
        assert_eq!(places.take(client("127.0.0.1")).err(), Some(NoPlace::Full));
    }

    #[test]
    fn all_together_have_no_more_than_there_are() {
        let places = places(2, None, None);
        let kept = ["192.0.2.1", "192.0.2.2"].map(|ip| places.take(client(ip)).expect("a place"));
        assert_eq!(places.take(client("192.0.2.3")).err(), Some(NoPlace::Full));
        assert_eq!((places.taken(), places.entries()), (2, (2, 1)));
        drop(kept);
        assert_eq!(places.taken(), 0);
    }

    #[test]
    fn every_address_has_a_place() {
        assert!(places(1, Some(0), Some(0)).take(client("192.0.2.1")).is_ok());
    }
}
