//! Places for the connections that others open: so many in all, and so many for each address.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rakwire::HostPrefix;

/// Why there is no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoPlace {
    /// All are taken.
    Full,
    /// The address has as many as one may have.
    FullForAddress,
}

/// The places of an endpoint.
#[derive(Debug)]
pub(super) struct Places {
    max: usize,
    max_per_address: usize,
    taken: Mutex<Taken>,
}

/// What is taken; a host without a place is not in the table, so that it has no more entries than there are places.
#[derive(Debug, Default)]
struct Taken {
    all: usize,
    by_host: HashMap<HostPrefix, usize>,
}

/// A place, which is free again once this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    places: Arc<Places>,
    host: HostPrefix,
}

impl Places {
    pub(super) fn new(max: usize, max_per_address: usize) -> Arc<Self> {
        Arc::new(Self { max, max_per_address: max_per_address.max(1), taken: Mutex::default() })
    }

    /// Takes a place for a client.
    pub(super) fn take(self: &Arc<Self>, client: SocketAddr) -> Result<Place, NoPlace> {
        let host = HostPrefix::of(client.ip());
        let mut taken = self.lock();
        if taken.all >= self.max {
            return Err(NoPlace::Full);
        }
        let of_host = taken.by_host.entry(host).or_default();
        // Who has none has room for one, so that no entry of 0 is left behind.
        if *of_host >= self.max_per_address {
            return Err(NoPlace::FullForAddress);
        }
        *of_host += 1;
        taken.all += 1;
        drop(taken);
        Ok(Place { places: Arc::clone(self), host })
    }

    pub(super) fn taken(&self) -> usize {
        self.lock().all
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.lock();
        taken.all = taken.all.saturating_sub(1);
        if let Some(of_host) = taken.by_host.get_mut(&self.host) {
            *of_host = of_host.saturating_sub(1);
            if *of_host == 0 {
                taken.by_host.remove(&self.host);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(ip: &str) -> SocketAddr {
        SocketAddr::new(ip.parse().expect("an address"), 19_132)
    }

    #[test]
    fn an_address_has_its_share_whatever_its_form() {
        let places = Places::new(10, 2);
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
        assert_eq!((places.taken(), places.lock().by_host.len()), (0, 0));
    }

    #[test]
    fn all_together_have_no_more_than_there_are() {
        let places = Places::new(2, usize::MAX);
        let kept = ["192.0.2.1", "192.0.2.2"].map(|ip| places.take(client(ip)).expect("a place"));
        assert_eq!(places.take(client("192.0.2.3")).err(), Some(NoPlace::Full));
        assert_eq!((places.taken(), places.lock().by_host.len()), (2, 2));
        drop(kept);
        assert_eq!(places.taken(), 0);
    }

    #[test]
    fn every_address_has_a_place() {
        assert!(Places::new(1, 0).take(client("192.0.2.1")).is_ok());
    }
}
