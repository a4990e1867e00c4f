//! The rates of tokens: the flows of one token have together what one client may send.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Instant;

use crate::flow::rate::RateLimit;
use crate::flow::{Rate, SharedRate};

/// How many more rates may be kept than there are flows, before those without one are forgotten.
const UNUSED_MAX: usize = 1_024;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct TokenRates(Mutex<Rates>);

#[derive(Debug, Default)]
struct Rates {
    by_id: HashMap<Box<str>, Weak<Mutex<RateLimit>>>,
    /// At so many, those without a flow are forgotten.
    full: usize,
}

impl TokenRates {
    /// The rate of a token, which is kept as long as a flow has it.
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

    /// How many rates are kept, and how many may be.
    pub(super) fn len(&self) -> (usize, usize) {
        (self.0.lock().unwrap_or_else(PoisonError::into_inner).by_id.len(), UNUSED_MAX)
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use super::*;

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
    fn tokens_without_a_flow_are_forgotten() {
        let (rates, now) = (TokenRates::default(), Instant::now());
        let kept = rates.of("kept", rate(), now);
        for id in 0..10_000 {
            drop(rates.of(&id.to_string(), rate(), now));
        }
        assert!(rates.0.lock().unwrap().by_id.len() <= UNUSED_MAX + 2);
        assert!((0..100).filter(|_| kept.admits(now, 100)).count() == 10);
        assert!(!rates.of("kept", rate(), now).admits(now, 100), "it is the same still");
    }
}
