//! The handshakes of WebTransport that are under way: limited together, and by network where a client has proved its address.

use std::net::IpAddr;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::admission::{AddressLimiter, Exempt, Share};
use crate::config::AddressLimits;

/// The most at a time.
const TOTAL_MAX: usize = 256;

/// With so many a client proves its address before it gets memory, which costs it a round trip.
const UNPROVEN_MAX: usize = 32;

/// What one network can have of them, so that it leaves some to others. Handshakes are short, and have no rate of their own.
const NETWORK_LIMITS: AddressLimits = AddressLimits {
    per_address: 32,
    per_prefix: 64,
    rate_per_address: 0,
    burst_per_address: 0,
    rate_per_prefix: 0,
    burst_per_prefix: 0,
};

/// See the module.
#[derive(Debug)]
pub(super) struct Handshakes {
    total: Arc<Semaphore>,
    by_network: AddressLimiter,
}

/// The place of one handshake, which is free again once this is dropped.
#[derive(Debug)]
pub(super) struct Handshake {
    _permit: OwnedSemaphorePermit,
    _share: Option<Share>,
}

impl Handshakes {
    pub(super) fn new() -> Self {
        let by_network = AddressLimiter::new(NETWORK_LIMITS, TOTAL_MAX, Exempt::default());
        Self { total: Arc::new(Semaphore::new(TOTAL_MAX)), by_network }
    }

    /// Whether there are so many that a client has to prove its address first.
    pub(super) fn want_proof(&self) -> bool {
        TOTAL_MAX - self.total.available_permits() >= UNPROVEN_MAX
    }

    /// Gives a client its place, if there is one. An address that nobody has proved does not count, because a forger would
    /// take the places of others.
    pub(super) fn begin(&self, proven: Option<IpAddr>) -> Option<Handshake> {
        let share = proven.map(|ip| self.by_network.take(ip)).transpose().ok()?;
        let permit = Arc::clone(&self.total).try_acquire_owned().ok()?;
        Some(Handshake { _permit: permit, _share: share })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> Option<IpAddr> {
        Some(text.parse().unwrap())
    }

    #[test]
    fn one_network_leaves_places_to_others() {
        let handshakes = Handshakes::new();
        let mut taken: Vec<_> =
            (0..=255).filter_map(|last| handshakes.begin(ip(&format!("192.0.2.{last}")))).collect();
        assert_eq!(taken.len(), 64);
        let same_address = (0..100).filter_map(|_| handshakes.begin(ip("2001:db8::1")));
        taken.extend(same_address);
        assert_eq!(taken.len(), 64 + 32);
        assert!(handshakes.begin(ip("198.51.100.1")).is_some());
        taken.clear();
        assert!(handshakes.begin(ip("192.0.2.1")).is_some());
    }

    #[test]
    fn many_handshakes_want_proof_and_all_have_a_limit() {
        let handshakes = Handshakes::new();
        let mut taken = Vec::new();
        while !handshakes.want_proof() {
            taken.push(handshakes.begin(None).unwrap());
        }
        assert_eq!(taken.len(), UNPROVEN_MAX);
        let networks = (0..=255).map(|third| ip(&format!("10.0.{third}.1")));
        taken.extend(networks.filter_map(|network| handshakes.begin(network)));
        assert_eq!(taken.len(), TOTAL_MAX);
    }
}
