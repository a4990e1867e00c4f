//! How much a client may send: two token buckets that are kept as times (the generic cell rate algorithm).

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::limits::Rate;

/// How much of a rate may pass at once.
const BURST: Duration = Duration::from_secs(1);

/// A rate that several flows have together. A clone is the same rate.
#[derive(Debug, Clone)]
pub struct SharedRate(pub(crate) Arc<Mutex<RateLimit>>);

impl SharedRate {
    /// A rate of which nothing is used yet.
    #[must_use]
    pub fn new(rate: Rate, now: Instant) -> Self {
        Self(Arc::new(Mutex::new(RateLimit::new(rate, now))))
    }

    /// See [`RateLimit::admits`].
    pub(crate) fn admits(&self, now: Instant, len: usize) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).admits(now, len)
    }
}

/// When each bucket would be full again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RateLimit {
    rate: Rate,
    datagrams_full_at: Instant,
    bytes_full_at: Instant,
}

impl RateLimit {
    pub(crate) const fn new(rate: Rate, now: Instant) -> Self {
        Self { rate, datagrams_full_at: now, bytes_full_at: now }
    }

    /// Whether a datagram of this length may pass; takes its tokens if so.
    pub(crate) fn admits(&mut self, now: Instant, len: usize) -> bool {
        let datagrams = taken(self.datagrams_full_at, now, 1, self.rate.datagrams);
        let bytes = taken(self.bytes_full_at, now, len, self.rate.bytes);
        match (datagrams, bytes) {
            (Some(datagrams), Some(bytes)) => {
                (self.datagrams_full_at, self.bytes_full_at) = (datagrams, bytes);
                true
            }
            (None, _) | (_, None) => false,
        }
    }
}

/// When a bucket is full again after `count` tokens were taken, if it has them.
fn taken(full_at: Instant, now: Instant, count: usize, per_second: NonZeroUsize) -> Option<Instant> {
    let cost = Duration::from_nanos((count as u64).saturating_mul(1_000_000_000) / per_second.get() as u64);
    let full_at = full_at.max(now);
    // A bucket that is full gives one datagram of any length, or a low rate would never pass it.
    let passes = full_at == now || full_at.saturating_duration_since(now) + cost <= BURST;
    passes.then(|| full_at + cost)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(datagrams: usize, bytes: usize, now: Instant) -> RateLimit {
        let number = |number| NonZeroUsize::new(number).unwrap();
        RateLimit::new(Rate { datagrams: number(datagrams), bytes: number(bytes) }, now)
    }

    fn passed(limit: &mut RateLimit, now: Instant, len: usize) -> usize {
        (0..1000).filter(|_| limit.admits(now, len)).count()
    }

    #[test]
    fn a_burst_of_a_second_passes_and_then_the_rate() {
        let now = Instant::now();
        let mut limit = limit(50, 1_000_000, now);
        assert_eq!(passed(&mut limit, now, 100), 50);
        assert_eq!(passed(&mut limit, now + Duration::from_millis(100), 100), 5);
        assert_eq!(passed(&mut limit, now + Duration::from_secs(60), 100), 50);
        assert_eq!(passed(&mut limit, now, 100), 0, "a clock that jumps back gives nothing");
    }

    #[test]
    fn bytes_count_too() {
        let now = Instant::now();
        let mut limit = limit(1000, 10_000, now);
        assert_eq!(passed(&mut limit, now, 1000), 10);
        assert_eq!(passed(&mut limit, now + Duration::from_millis(500), 1000), 5);
    }

    #[test]
    fn a_datagram_above_the_rate_passes_a_full_bucket() {
        let now = Instant::now();
        let mut limit = limit(1000, 100, now);
        assert!(limit.admits(now, 1000));
        assert!(!limit.admits(now + Duration::from_secs(9), 1));
        assert!(limit.admits(now + Duration::from_secs(10), 1));
    }
}
