//! The ids of tokens that admit only once.

use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// How many ids are remembered. A relay that has more tokens in use refuses further ones: it could not tell whether
/// they have been used.
const IDS_MAX: usize = 200_000;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct UsedTokens(Mutex<Ids>);

#[derive(Debug, Default)]
struct Ids {
    all: HashSet<Arc<str>>,
    by_expiry: BTreeSet<(SystemTime, Arc<str>)>,
}

/// Why a token is not admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unusable {
    Used,
    /// Too many tokens are in use.
    Full,
}

impl UsedTokens {
    /// Marks a token as used until it expires, or until the claim is dropped without [`TokenClaim::keep`].
    pub(crate) fn claim(
        &self,
        id: &str,
        until: SystemTime,
        now: SystemTime,
    ) -> Result<TokenClaim<'_>, Unusable> {
        let mut ids = self.lock();
        ids.forget_expired(now);
        if ids.all.contains(id) {
            return Err(Unusable::Used);
        }
        if ids.all.len() >= IDS_MAX {
            return Err(Unusable::Full);
        }
        let id: Arc<str> = id.into();
        ids.all.insert(Arc::clone(&id));
        ids.by_expiry.insert((until, Arc::clone(&id)));
        Ok(TokenClaim { used: self, until, id: Some(id) })
    }

    fn lock(&self) -> MutexGuard<'_, Ids> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A token that nobody else can use while its client waits for a slot.
#[derive(Debug)]
#[must_use]
pub(crate) struct TokenClaim<'a> {
    used: &'a UsedTokens,
    until: SystemTime,
    /// Its id, unless it stays used.
    id: Option<Arc<str>>,
}

impl TokenClaim<'_> {
    /// The token has been used.
    pub(crate) fn keep(mut self) {
        self.id = None;
    }
}

impl Drop for TokenClaim<'_> {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        let mut ids = self.used.lock();
        if ids.by_expiry.remove(&(self.until, Arc::clone(&id))) {
            ids.all.remove(&id);
        }
    }
}

impl Ids {
    fn forget_expired(&mut self, now: SystemTime) {
        while let Some((until, _)) = self.by_expiry.first() {
            if *until >= now {
                return;
            }
            if let Some((_, id)) = self.by_expiry.pop_first() {
                self.all.remove(&id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_claim_that_is_not_kept_leaves_the_token_unused() {
        let used = UsedTokens::default();
        let now = SystemTime::now();
        let claim = used.claim("a", now, now).unwrap();
        assert_eq!(used.claim("a", now, now).unwrap_err(), Unusable::Used);
        drop(claim);
        used.claim("a", now, now).unwrap().keep();
        assert_eq!(used.claim("a", now, now).unwrap_err(), Unusable::Used);
    }

    #[test]
    fn an_id_is_used_once_until_it_expires() {
        let used = UsedTokens::default();
        let now = SystemTime::now();
        let second = Duration::from_secs(1);
        let claim = |id: &str, until, now| used.claim(id, until, now).map(TokenClaim::keep);
        assert_eq!(claim("a", now + second, now), Ok(()));
        assert_eq!(claim("b", now + 2 * second, now), Ok(()));
        assert_eq!(claim("a", now + second, now + second), Err(Unusable::Used));
        assert_eq!(claim("c", now + 9 * second, now + 2 * second), Ok(()));
        let ids = used.0.lock().unwrap();
        assert_eq!((ids.all.len(), ids.by_expiry.len()), (2, 2), "'a' is forgotten");
    }

    #[test]
    fn what_cannot_be_remembered_is_refused() {
        let used = UsedTokens::default();
        let now = SystemTime::now();
        let claim = |id: &str, now| used.claim(id, now, now).map(TokenClaim::keep);
        for id in 0..IDS_MAX {
            assert_eq!(claim(&id.to_string(), now), Ok(()));
        }
        assert_eq!(claim("one more", now), Err(Unusable::Full));
        assert_eq!(claim("one more", now + Duration::from_secs(1)), Ok(()));
    }
}
