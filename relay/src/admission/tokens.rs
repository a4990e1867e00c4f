//! The ids of used single-use tokens, and the rates of tokens. All flows with the same token share the rate of one
//! client.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant, SystemTime};

use crate::flow::rate::RateLimit;
use crate::flow::{Rate, SharedRate};
use crate::time::Now;

/// Maximum number of stored ids. If more tokens are in use, the relay refuses further tokens, because it could not
/// detect their reuse.
const IDS_MAX: usize = 200_000;

/// The maximum time that an id is stored after the system clock has passed its expiry.
const LIFETIME_MAX: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// The ids of used single-use tokens.
#[derive(Debug)]
pub(crate) struct UsedTokens {
    ids: Mutex<Ids>,
    max: usize,
}

#[derive(Debug, Default)]
struct Ids {
    all: HashSet<Arc<str>>,
    by_expiry: BTreeSet<Entry>,
}

/// The time at which an id can be removed. Both clocks must have passed it; otherwise setting the system clock forward
/// and back would admit a used token again.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    wall: SystemTime,
    at: Instant,
    id: Arc<str>,
}

/// The reason why a token is not admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unusable {
    Used,
    /// The maximum number of used tokens is stored.
    Full,
}

impl Default for UsedTokens {
    fn default() -> Self {
        Self::new(IDS_MAX)
    }
}

impl UsedTokens {
    /// Creates a store for at most `max` ids.
    pub(super) fn new(max: usize) -> Self {
        Self { ids: Mutex::default(), max }
    }

    /// Marks a token as used until it expires. Dropping the claim without [`TokenClaim::keep`] releases the token.
    pub(crate) fn claim(&self, id: &str, until: SystemTime, now: Now) -> Result<TokenClaim<'_>, Unusable> {
        let mut ids = self.lock();
        ids.forget_expired(now);
        if ids.all.contains(id) {
            return Err(Unusable::Used);
        }
        if ids.all.len() >= self.max {
            return Err(Unusable::Full);
        }
        let lifetime = until.duration_since(now.wall).unwrap_or_default().min(LIFETIME_MAX);
        let entry = Entry { wall: until, at: now.at + lifetime, id: id.into() };
        ids.all.insert(Arc::clone(&entry.id));
        ids.by_expiry.insert(entry.clone());
        Ok(TokenClaim { used: self, entry: Some(entry) })
    }

    /// Returns the number of stored ids.
    pub(super) fn len(&self) -> usize {
        let ids = self.lock();
        debug_assert_eq!(ids.all.len(), ids.by_expiry.len());
        ids.all.len()
    }

    fn lock(&self) -> MutexGuard<'_, Ids> {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reserves a token while its client waits for a slot.
#[derive(Debug)]
#[must_use]
pub(crate) struct TokenClaim<'a> {
    used: &'a UsedTokens,
    /// The entry to remove on drop, unless the token stays used.
    entry: Option<Entry>,
}

impl TokenClaim<'_> {
    /// Keeps the token marked as used.
    pub(crate) fn keep(mut self) {
        self.entry = None;
    }
}

impl Drop for TokenClaim<'_> {
    fn drop(&mut self) {
        let Some(entry) = self.entry.take() else { return };
        let mut ids = self.used.lock();
        if ids.by_expiry.remove(&entry) {
            ids.all.remove(&entry.id);
        }
    }
}

impl Ids {
    fn forget_expired(&mut self, now: Now) {
        let has_expired = |entry: &Entry| entry.wall < now.wall && entry.at <= now.at;
        while self.by_expiry.first().is_some_and(has_expired) {
            if let Some(entry) = self.by_expiry.pop_first() {
                self.all.remove(&entry.id);
            }
        }
    }
}

/// Number of rates beyond the open flows at which unused rates are removed.
const UNUSED_MAX: usize = 1_024;

/// The rates of tokens: all flows of one token share the rate of one client.
#[derive(Debug, Default)]
pub(crate) struct TokenRates(Mutex<Rates>);

#[derive(Debug, Default)]
struct Rates {
    by_id: HashMap<Box<str>, Weak<Mutex<RateLimit>>>,
    /// Number of rates at which those without a flow are removed.
    full: usize,
}

impl TokenRates {
    /// Returns the rate of a token, which is stored for as long as a flow uses it.
    pub(crate) fn of(&self, id: &str, rate: Rate, now: Instant) -> SharedRate {
        let mut rates = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = rates.by_id.get(id).and_then(Weak::upgrade) {
            return SharedRate(known);
        }
        if rates.by_id.len() >= rates.full {
            rates.by_id.retain(|_, rate| rate.strong_count() > 0);
            rates.full = 2 * rates.by_id.len() + UNUSED_MAX;
        }
        let rate = SharedRate::new(rate, now);
        rates.by_id.insert(id.into(), Arc::downgrade(&rate.0));
        rate
    }

    /// Returns the number of rates, and the number at which unused ones are removed.
    pub(super) fn len(&self) -> (usize, usize) {
        (self.0.lock().unwrap_or_else(PoisonError::into_inner).by_id.len(), UNUSED_MAX)
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Advances both clocks by some seconds.
    fn later(now: Now, seconds: u32) -> Now {
        Now { at: now.at + seconds * SECOND, wall: now.wall + seconds * SECOND }
    }

    #[test]
    fn a_dropped_claim_leaves_the_token_unused() {
        let used = UsedTokens::default();
        let now = Now::read();
        let claim = used.claim("a", now.wall, now).unwrap();
        assert_eq!(used.claim("a", now.wall, now).unwrap_err(), Unusable::Used);
        drop(claim);
        used.claim("a", now.wall, now).unwrap().keep();
        assert_eq!(used.claim("a", now.wall, now).unwrap_err(), Unusable::Used);
    }

    #[test]
    fn a_token_id_is_accepted_once_until_it_expires() {
        let used = UsedTokens::default();
        let now = Now::read();
        let claim = |id: &str, until, now| used.claim(id, until, now).map(TokenClaim::keep);
        assert_eq!(claim("a", now.wall + SECOND, now), Ok(()));
        assert_eq!(claim("b", now.wall + 2 * SECOND, now), Ok(()));
        assert_eq!(claim("a", now.wall + SECOND, later(now, 1)), Err(Unusable::Used));
        assert_eq!(claim("c", now.wall + 9 * SECOND, later(now, 2)), Ok(()));
        let ids = used.ids.lock().unwrap();
        assert_eq!((ids.all.len(), ids.by_expiry.len()), (2, 2), "the expired id 'a' is removed");
    }

    #[test]
    fn clock_jumps_do_not_readmit_used_tokens() {
        let used = UsedTokens::default();
        let now = Now::read();
        let claim = |id: &str, until, now| used.claim(id, until, now).map(TokenClaim::keep);
        assert_eq!(claim("a", now.wall + 60 * SECOND, now), Ok(()));
        let ahead = Now { wall: now.wall + 3_600 * SECOND, ..later(now, 1) };
        assert_eq!(claim("b", ahead.wall + 60 * SECOND, ahead), Ok(()));
        assert_eq!(claim("a", now.wall + 60 * SECOND, later(now, 2)), Err(Unusable::Used));
        let behind = Now { wall: now.wall - 3_600 * SECOND, ..later(now, 100) };
        assert_eq!(claim("a", now.wall + 60 * SECOND, behind), Err(Unusable::Used));
        assert_eq!(claim("c", now.wall + 200 * SECOND, later(now, 101)), Ok(()));
        assert!(!used.ids.lock().unwrap().all.contains("a"), "both clocks have passed its expiry");
    }

    #[test]
    fn tokens_are_refused_when_the_store_of_used_ids_is_full() {
        let used = UsedTokens::new(100);
        let now = Now::read();
        let claim = |id: &str, now: Now| used.claim(id, now.wall, now).map(TokenClaim::keep);
        for id in 0..100 {
            assert_eq!(claim(&id.to_string(), now), Ok(()));
        }
        assert_eq!(claim("one more", now), Err(Unusable::Full));
        assert_eq!(claim("one more", later(now, 1)), Ok(()));
    }

    fn rate() -> Rate {
        let number = |number| NonZeroUsize::new(number).unwrap();
        Rate { datagrams: number(10), bytes: number(10_000) }
    }

    #[test]
    fn the_flows_of_a_token_share_its_rate() {
        let (rates, now) = (TokenRates::default(), Instant::now());
        let (one, two, other) =
            (rates.of("a", rate(), now), rates.of("a", rate(), now), rates.of("b", rate(), now));
        let passed = |rate: &SharedRate| (0..100).filter(|_| rate.admits(now, 100)).count();
        assert_eq!((passed(&one), passed(&two), passed(&other)), (10, 0, 10));
    }

    #[test]
    fn token_rates_without_a_flow_are_removed() {
        let (rates, now) = (TokenRates::default(), Instant::now());
        let kept = rates.of("kept", rate(), now);
        for id in 0..10_000 {
            drop(rates.of(&id.to_string(), rate(), now));
        }
        assert!(rates.0.lock().unwrap().by_id.len() <= UNUSED_MAX + 2);
        assert!((0..100).filter(|_| kept.admits(now, 100)).count() == 10);
        assert!(!rates.of("kept", rate(), now).admits(now, 100), "a rate in use is kept");
    }
}
