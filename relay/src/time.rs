//! Time without IO: a moment on two clocks, and token buckets.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A moment, as shown by two clocks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Now {
    /// The monotonic time.
    pub(crate) at: Instant,
    /// The wall clock time, which is comparable between machines. It jumps when the clock is set.
    pub(crate) wall: SystemTime,
}

impl Now {
    pub(crate) fn read() -> Self {
        Self { at: Instant::now(), wall: SystemTime::now() }
    }

    /// Returns the seconds since 1970, or 0 for a time before 1970.
    pub(crate) fn unix_seconds(self) -> u64 {
        self.wall.duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
    }
}

/// A token bucket, stored as the time at which it is full again (the generic cell rate algorithm). The default is a
/// full bucket.
///
/// The size of a bucket is the time that it takes to fill. The cost of tokens is the time in which they are refilled.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Bucket(Option<Instant>);

impl Bucket {
    /// Creates a bucket that becomes full at `now`.
    pub(crate) const fn full(now: Instant) -> Self {
        Self(Some(now))
    }

    /// Returns the time until the bucket is full.
    pub(crate) fn missing(self, now: Instant) -> Duration {
        self.0.map_or(Duration::ZERO, |full_at| full_at.saturating_duration_since(now))
    }

    /// Returns true if the bucket has tokens of this cost.
    pub(crate) fn has(self, now: Instant, cost: Duration, size: Duration) -> bool {
        self.missing(now).saturating_add(cost) <= size
    }

    /// Returns true if the bucket has tokens of this cost or is full. Otherwise a low rate would never pass a long
    /// datagram.
    pub(crate) fn has_or_is_full(self, now: Instant, cost: Duration, size: Duration) -> bool {
        self.missing(now).is_zero() || self.has(now, cost, size)
    }

    /// Takes tokens, even if the bucket does not have enough.
    pub(crate) fn spend(&mut self, now: Instant, cost: Duration) {
        self.0 = Some(self.0.map_or(now, |full_at| full_at.max(now)) + cost);
    }

    /// Takes tokens if the bucket has enough. Returns false if it does not.
    pub(crate) fn take(&mut self, now: Instant, cost: Duration, size: Duration) -> bool {
        let has_them = self.has(now, cost, size);
        if has_them {
            self.spend(now, cost);
        }
        has_them
    }

    /// Fills the bucket until it lacks at most `missing`.
    pub(crate) fn fill_to(&mut self, now: Instant, missing: Duration) {
        self.0 = self.0.map(|full_at| full_at.min(now + missing));
    }
}

/// Returns the cost of `tokens` if `per` tokens are refilled within `time`.
pub(crate) fn cost(tokens: usize, per: usize, time: Duration) -> Duration {
    let time = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let nanos = time.saturating_mul(tokens as u64).checked_div(per as u64);
    nanos.map_or(Duration::MAX, Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_token_bucket_passes_a_burst_then_the_rate() {
        let (mut bucket, now) = (Bucket::default(), Instant::now());
        let each = cost(1, 3, SECOND);
        let taken = |bucket: &mut Bucket, now| (0..10).filter(|_| bucket.take(now, each, SECOND)).count();
        assert_eq!(taken(&mut bucket, now), 3);
        assert_eq!(taken(&mut bucket, now + SECOND / 2), 1);
        assert_eq!(taken(&mut bucket, now), 0, "a clock that goes back adds no tokens");
        assert_eq!(taken(&mut bucket, now + 100 * SECOND), 3);
    }

    #[test]
    fn an_empty_bucket_is_never_overdrawn() {
        let (mut bucket, now) = (Bucket::full(Instant::now()), Instant::now());
        assert!(!bucket.take(now, cost(1, 0, SECOND), SECOND));
        assert!(bucket.take(now, SECOND, SECOND) && !bucket.take(now, cost(1, 1_000, SECOND), SECOND));
    }

    #[test]
    fn a_full_bucket_covers_any_cost_and_its_debt_can_be_bounded() {
        let (mut bucket, now) = (Bucket::default(), Instant::now());
        assert!(bucket.has_or_is_full(now, 10 * SECOND, SECOND));
        bucket.spend(now, 10 * SECOND);
        assert!(!bucket.has_or_is_full(now + 9 * SECOND, SECOND, SECOND));
        bucket.fill_to(now, 2 * SECOND);
        assert_eq!(bucket.missing(now), 2 * SECOND);
        assert!(bucket.has_or_is_full(now + 2 * SECOND, 10 * SECOND, SECOND));
    }
}
