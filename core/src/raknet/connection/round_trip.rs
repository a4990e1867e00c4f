//! The round-trip time and what follows from it (supplement 4.7).

use core::time::Duration;

/// Smoothed round-trip time and its deviation, in microseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RoundTrip {
    smoothed: u32,
    deviation: u32,
    lowest: u32,
}

const UNKNOWN_TIMEOUT: u32 = 2_000_000;
const MAX_TIMEOUT: u32 = 2_000_000;
const EXTRA: u32 = 30_000;

impl RoundTrip {
    pub(super) fn sample(&mut self, rtt: Duration) {
        let rtt = u32::try_from(rtt.as_micros()).unwrap_or(u32::MAX / 16).clamp(1, u32::MAX / 16);
        if self.smoothed == 0 {
            *self = Self { smoothed: rtt, deviation: rtt, lowest: rtt };
            return;
        }
        self.lowest = self.lowest.min(rtt);
        let difference = rtt.abs_diff(self.smoothed);
        self.smoothed = step(self.smoothed, rtt);
        self.deviation = step(self.deviation, difference);
    }

    pub(super) const fn is_known(&self) -> bool {
        self.smoothed != 0
    }

    /// Zero before the first sample.
    pub(super) const fn smoothed(&self) -> Duration {
        Duration::from_micros(self.smoothed as u64)
    }

    /// Zero before the first sample.
    pub(super) const fn lowest(&self) -> Duration {
        Duration::from_micros(self.lowest as u64)
    }

    /// After how long a datagram without an answer counts as lost, doubled `backoff` times.
    pub(super) fn timeout(&self, floor: Duration, backoff: u8) -> Duration {
        let plain = if self.is_known() {
            (2 * self.smoothed).saturating_add(4 * self.deviation).saturating_add(EXTRA).min(MAX_TIMEOUT)
        } else {
            UNKNOWN_TIMEOUT
        };
        let doubled = plain.saturating_mul(1 << backoff.min(4)).min(MAX_TIMEOUT.max(plain));
        Duration::from_micros(doubled.into()).max(floor)
    }
}

/// A twentieth of the way from `from` to `to`.
const fn step(from: u32, to: u32) -> u32 {
    if to >= from { from + (to - from) / 20 } else { from - (from - to) / 20 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOOR: Duration = Duration::ZERO;

    #[test]
    fn the_timeout_follows_the_samples() {
        let mut round_trip = RoundTrip::default();
        assert_eq!(round_trip.timeout(FLOOR, 0), Duration::from_secs(2));
        round_trip.sample(Duration::from_millis(20));
        assert_eq!(round_trip.timeout(FLOOR, 0), Duration::from_millis(6 * 20 + 30));
        for _ in 0..500 {
            round_trip.sample(Duration::from_millis(20));
        }
        assert!(round_trip.timeout(FLOOR, 0) < Duration::from_millis(72));
        assert_eq!(round_trip.timeout(Duration::from_secs(1), 0), Duration::from_secs(1));
        assert!(round_trip.timeout(FLOOR, 1) > Duration::from_millis(138));
        assert_eq!(round_trip.timeout(FLOOR, 200), round_trip.timeout(FLOOR, 4));
    }

    #[test]
    fn absurd_samples_do_not_overflow() {
        let mut round_trip = RoundTrip::default();
        for _ in 0..100 {
            round_trip.sample(Duration::MAX);
            round_trip.sample(Duration::ZERO);
        }
        assert!(round_trip.timeout(FLOOR, 4) <= Duration::from_secs(2));
    }
}
