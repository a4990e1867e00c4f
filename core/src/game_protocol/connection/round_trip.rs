//! The round-trip time and when a chunk is sent again.

use core::time::Duration;

use crate::game_protocol::config::Resend;
use crate::time::micros;

/// How often the time doubles at most while nothing comes back.
const MAX_BACKOFF: u8 = 4;

/// Smoothed round-trip time and its deviation in microseconds, as RFC 6298 has them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RoundTrip {
    smoothed: u32,
    deviation: u32,
    backoff: u8,
}

impl RoundTrip {
    pub(super) fn sample(&mut self, micros: u32) {
        let sample = micros.clamp(1, u32::MAX / 16);
        if self.smoothed == 0 {
            self.smoothed = sample;
            self.deviation = sample / 2;
            return;
        }
        self.deviation = self.deviation - self.deviation / 4 + sample.abs_diff(self.smoothed) / 4;
        self.smoothed = self.smoothed - self.smoothed / 8 + sample / 8;
    }

    /// Something came back.
    pub(super) const fn hear(&mut self) {
        self.backoff = 0;
    }

    /// A whole interval went by and nothing came back.
    pub(super) fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(MAX_BACKOFF);
    }

    pub(super) const fn smoothed(&self) -> Duration {
        Duration::from_micros(self.smoothed as u64)
    }

    /// After how many microseconds a chunk is sent again.
    pub(super) fn interval(&self, resend: Resend) -> u32 {
        match resend {
            Resend::Every(interval) => micros(interval).max(1),
            Resend::RoundTrip { min, max } => {
                let measured = self.smoothed.saturating_add(self.deviation.saturating_mul(4));
                let plain = if self.smoothed == 0 { micros(max) } else { measured };
                let waited = plain.saturating_mul(1 << self.backoff);
                // Bounds that contradict each other are no reason to panic: the shortest time counts.
                waited.min(micros(max)).max(micros(min)).max(1)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_that_contradict_each_other_give_the_shortest_time() {
        let (min, max) = (Duration::from_millis(20), Duration::from_millis(10));
        assert_eq!(RoundTrip::default().interval(Resend::RoundTrip { min, max }), 20_000);
        let never = Resend::RoundTrip { min: Duration::ZERO, max: Duration::ZERO };
        assert_eq!(RoundTrip::default().interval(never), 1);
    }

    #[test]
    fn a_fixed_interval_stays_what_it_is() {
        let mut round_trip = RoundTrip::default();
        round_trip.sample(3_000);
        round_trip.back_off();
        assert_eq!(round_trip.interval(Resend::default()), 100_000);
    }

    #[test]
    fn a_measured_interval_follows_the_samples_within_its_bounds() {
        let mut round_trip = RoundTrip::default();
        assert_eq!(round_trip.interval(Resend::ROUND_TRIP), 1_000_000);
        for _ in 0..200 {
            round_trip.sample(40_000);
        }
        let calm = round_trip.interval(Resend::ROUND_TRIP);
        assert!((39_000..45_000).contains(&calm), "{calm}");
        round_trip.back_off();
        assert_eq!(round_trip.interval(Resend::ROUND_TRIP), 2 * calm);
        for _ in 0..100 {
            round_trip.back_off();
        }
        assert_eq!(round_trip.interval(Resend::ROUND_TRIP), 16 * calm);
        round_trip.hear();
        assert_eq!(round_trip.interval(Resend::ROUND_TRIP), calm);
        for _ in 0..200 {
            round_trip.sample(1);
        }
        assert_eq!(round_trip.interval(Resend::ROUND_TRIP), 10_000);
        round_trip.sample(u32::MAX);
        assert_eq!(round_trip.interval(Resend::ROUND_TRIP), 1_000_000);
    }
}
