//! What a peer keeps for the handshakes of all its secure connections.

use core::fmt;
use core::net::IpAddr;

use super::config::Config;
use super::features::{SERVER, room};
use super::security::Security;
use crate::rate_limit::RateLimit;
use crate::secure::SeededRandom;
use crate::time::Instant;

/// Groups of networks that have a share of the handshakes each.
const NETWORKS: usize = room(SERVER, 32);

/// What a peer keeps for the handshakes of all its connections.
pub(crate) struct SecureState {
    random: SeededRandom,
    limit: RateLimit<NETWORKS>,
    /// A time, and how many seconds since 1970 it was then.
    unix_time: Option<(Instant, u64)>,
}

impl fmt::Debug for SecureState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecureState").field("limit", &self.limit).finish_non_exhaustive()
    }
}

impl SecureState {
    pub(super) fn new(config: &mut Config) -> Self {
        // Without security nothing is drawn from it.
        let random = config.security.as_mut().map_or_else(SeededRandom::unseeded, Security::take_random);
        Self { random, limit: RateLimit::default(), unix_time: None }
    }

    pub(crate) const fn random(&mut self) -> &mut SeededRandom {
        &mut self.random
    }

    pub(super) const fn set_unix_time(&mut self, now: Instant, seconds: u64) {
        self.unix_time = Some((now, seconds));
    }

    /// The seconds since 1970; as many as there can be while nobody has told them, so that every token has expired.
    pub(crate) fn unix_time(&self, now: Instant) -> u64 {
        self.unix_time
            .map_or(u64::MAX, |(then, seconds)| seconds.saturating_add(now.saturating_since(then).as_secs()))
    }

    /// Whether a handshake may be computed for a client of this address.
    pub(crate) fn admits(&mut self, config: &Config, now: Instant, from: IpAddr) -> bool {
        let rates = config.security.as_ref().map(Security::rates);
        rates.is_some_and(|rates| self.limit.admits(&config.secret, rates, now, from))
    }
}
