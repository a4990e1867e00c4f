//! How much a client may send before its server has answered: two token buckets, of datagrams and of bytes.

use std::time::{Duration, Instant};

use super::mtu::LARGEST_PAYLOAD;

/// What holds for the handshakes of a flow.
///
/// The budgets are for the time before the server has answered. Each is what may be sent at once, and it fills up evenly
/// within [`refill`](Self::refill).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Handshake {
    /// The longest datagram that the path to the client carries, in bytes without IP and UDP headers. RakNet's first
    /// requests are cut to it, and every MTU in a handshake is at most 28 more. Default: 1,464, which is RakNet's own limit.
    pub payload_max: u16,
    /// How many datagrams may be sent at once. Default: 64.
    pub datagrams: u32,
    /// How many bytes may be sent at once. Default: 65,536, which are the requests of three attempts of the original RakNet.
    pub bytes: u32,
    /// How long an empty budget takes to be full again. Default: 8 s, a bit more than an attempt of the original RakNet.
    pub refill: Duration,
}

impl Default for Handshake {
    fn default() -> Self {
        Self { payload_max: LARGEST_PAYLOAD, datagrams: 64, bytes: 64 * 1024, refill: Duration::from_secs(8) }
    }
}

/// Tokens that come back with time.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    size: f64,
    tokens: f64,
}

impl Bucket {
    fn full(size: u32) -> Self {
        Self { size: size.into(), tokens: size.into() }
    }

    fn fill(&mut self, share: f64) {
        self.tokens = (self.tokens + self.size * share).min(self.size);
    }
}

/// The budget of one flow.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budget {
    refill: Duration,
    datagrams: Bucket,
    bytes: Bucket,
    at: Instant,
}

impl Budget {
    pub(crate) fn new(handshake: &Handshake, now: Instant) -> Self {
        Self {
            refill: handshake.refill,
            datagrams: Bucket::full(handshake.datagrams),
            bytes: Bucket::full(handshake.bytes),
            at: now,
        }
    }

    /// Whether it is as a new one, whatever was taken: time enough has passed.
    pub(crate) fn is_full(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.at) >= self.refill
    }

    /// Whether a datagram of `length` bytes may be sent; if so it is taken off.
    pub(crate) fn take(&mut self, now: Instant, length: usize) -> bool {
        let share = now.saturating_duration_since(self.at).as_secs_f64() / self.refill.as_secs_f64();
        // Without a time to fill up in, a budget is always full.
        let share = if share.is_nan() { 1.0 } else { share };
        self.at = self.at.max(now);
        self.datagrams.fill(share);
        self.bytes.fill(share);
        let length = u32::try_from(length).map_or(f64::INFINITY, f64::from);
        let possible = self.datagrams.tokens >= 1.0 && self.bytes.tokens >= length;
        if possible {
            self.datagrams.tokens -= 1.0;
            self.bytes.tokens -= length;
        }
        possible
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HANDSHAKE: Handshake =
        Handshake { payload_max: 1_464, datagrams: 8, bytes: 1_000, refill: Duration::from_secs(8) };

    fn taken(budget: &mut Budget, now: Instant, length: usize) -> usize {
        (0..100).filter(|_| budget.take(now, length)).count()
    }

    #[test]
    fn both_datagrams_and_bytes_are_bounded_and_come_back() {
        let start = Instant::now();
        let mut budget = Budget::new(&HANDSHAKE, start);
        assert_eq!(taken(&mut budget, start, 10), 8);
        assert_eq!(taken(&mut budget, start + Duration::from_secs(1), 10), 1);
        assert_eq!(taken(&mut budget, start + Duration::from_secs(100), 250), 4);
        assert!(!budget.take(start + Duration::from_secs(1_000), 1_001));
        assert_eq!(taken(&mut budget, start + Duration::from_secs(1_000), 10), 8);
    }

    #[test]
    fn a_clock_that_goes_back_fills_nothing() {
        let start = Instant::now() + Duration::from_secs(10);
        let mut budget = Budget::new(&HANDSHAKE, start);
        assert_eq!(taken(&mut budget, start, 10), 8);
        assert_eq!(taken(&mut budget, start - Duration::from_secs(5), 10), 0);
        assert_eq!(taken(&mut budget, start, 10), 0);
    }

    #[test]
    fn a_budget_of_nothing_passes_nothing() {
        let start = Instant::now();
        let none = Handshake { datagrams: 0, ..HANDSHAKE };
        assert_eq!(taken(&mut Budget::new(&none, start), start + Duration::from_secs(60), 1), 0);
        let at_once = Handshake { refill: Duration::ZERO, ..HANDSHAKE };
        assert_eq!(taken(&mut Budget::new(&at_once, start), start, 10), 100);
    }
}
