//! The ids of tokens that admit only once.

use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
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
    /// Marks a token as used until it expires.
    pub(crate) fn claim(&self, id: &str, until: SystemTime, now: SystemTime) -> Result<(), Unusable> {
        let mut ids = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ids.forget_expired(now);
        if ids.all.contains(id) {
            return Err(Unusable::Used);
        }
        if ids.all.len() >= IDS_MAX {
            return Err(Unusable::Full);
        }
        let id: Arc<str> = id.into();
        ids.all.insert(Arc::clone(&id));
        ids.by_expiry.insert((until, id));
        Ok(())
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
    fn an_id_is_used_once_until_it_expires() {
        let used = UsedTokens::default();
        let now = SystemTime::now();
        let second = Duration::from_secs(1);
        assert_eq!(used.claim("a", now + second, now), Ok(()));
        assert_eq!(used.claim("b", now + 2 * second, now), Ok(()));
        assert_eq!(used.claim("a", now + second, now + second), Err(Unusable::Used));
        assert_eq!(used.claim("c", now + 9 * second, now + 2 * second), Ok(()));
        let ids = used.0.lock().unwrap();
        assert_eq!((ids.all.len(), ids.by_expiry.len()), (2, 2), "'a' is forgotten");
    }

    #[test]
    fn what_cannot_be_remembered_is_refused() {
        let used = UsedTokens::default();
        let now = SystemTime::now();
        for id in 0..IDS_MAX {
            assert_eq!(used.claim(&id.to_string(), now, now), Ok(()));
        }
        assert_eq!(used.claim("one more", now, now), Err(Unusable::Full));
        assert_eq!(used.claim("one more", now, now + Duration::from_secs(1)), Ok(()));
    }
}
