//! The round-trip time, and the interval after which a chunk is sent again that follows from it.

use core::time::Duration;

use crate::endpoint::MIN_STREAM_TIMEOUT;
use crate::game_protocol::config::ResendInterval;
use crate::time::micros;

/// How often the interval doubles at most while no acknowledgement arrives. RFC 6298 section 5.5 doubles it without such a
/// bound; this one is ours, so that a chunk still leaves a few times before the connection counts as lost.
const MAX_BACKOFF: u8 = 4;

/// The longest timeout over a stream, in microseconds, if the interval itself is not longer. The protocol has no other sign of
/// life than what is sent again, so some have to come within `Config::timeout`.
const MAX_STREAM_TIMEOUT: u32 = 2_000_000;

/// The round-trip time in microseconds: the averages of RFC 6298 section 2.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RttEstimator {
    srtt: u32,
    rttvar: u32,
    backoff: u8,
}

impl RttEstimator {
    pub(super) fn sample(&mut self, micros: u32) {
        let sample = micros.clamp(1, u32::MAX / 16);
        if self.srtt == 0 {
            self.srtt = sample;
            self.rttvar = sample / 2;
            return;
        }
        self.rttvar = self.rttvar - self.rttvar / 4 + sample.abs_diff(self.srtt) / 4;
        self.srtt = self.srtt - self.srtt / 8 + sample / 8;
    }

    /// An acknowledgement arrived: the interval is no longer doubled.
    pub(super) const fn reset_backoff(&mut self) {
        self.backoff = 0;
    }

    /// A whole interval went by without an acknowledgement: the next one is twice as long.
    pub(super) fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(MAX_BACKOFF);
    }

    pub(super) const fn srtt(&self) -> Duration {
        Duration::from_micros(self.srtt as u64)
    }

    /// After how many microseconds a chunk is sent again.
    pub(super) fn interval(&self, resend: ResendInterval) -> u32 {
        self.interval_after(resend, self.backoff)
    }

    /// After how many microseconds a chunk is sent again, if that was doubled `backoff` times.
    fn interval_after(&self, resend: ResendInterval, backoff: u8) -> u32 {
        match resend {
            ResendInterval::Fixed(interval) => micros(interval).max(1),
            ResendInterval::Measured { min, max } => {
                let plain = if self.srtt == 0 { micros(max) } else { self.variable() };
                let waited = plain.saturating_mul(1 << backoff);
                // Bounds that contradict each other are no reason to panic: the shortest time counts.
                waited.min(micros(max)).max(micros(min)).max(1)
            }
        }
    }

    /// The timeout of RFC 6298 section 2, without its bounds.
    const fn variable(&self) -> u32 {
        self.srtt.saturating_add(self.rttvar.saturating_mul(4))
    }

    /// How many microseconds without an acknowledgement tell that a stream that moves brings nothing more: those after which an
    /// acknowledgement of what was in it would have come.
    pub(super) fn stream_pause(&self, resend: ResendInterval) -> u32 {
        // Samples of what a stream has held back make it long.
        self.interval_after(resend, 0).max(self.variable().min(MIN_STREAM_TIMEOUT))
    }

    /// After how many microseconds without an acknowledgement a chunk is sent again over a stream.
    pub(super) fn stream_timeout(&self, resend: ResendInterval) -> u32 {
        let shortest = self.interval_after(resend, 0).max(MIN_STREAM_TIMEOUT);
        shortest.saturating_mul(1 << self.backoff).min(MAX_STREAM_TIMEOUT.max(shortest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_that_contradict_each_other_give_the_shortest_time() {
        let (min, max) = (Duration::from_millis(20), Duration::from_millis(10));
        assert_eq!(RttEstimator::default().interval(ResendInterval::Measured { min, max }), 20_000);
        let never = ResendInterval::Measured { min: Duration::ZERO, max: Duration::ZERO };
        assert_eq!(RttEstimator::default().interval(never), 1);
    }

    #[test]
    fn a_fixed_interval_stays_what_it_is() {
        let mut rtt = RttEstimator::default();
        rtt.sample(3_000);
        rtt.back_off();
        assert_eq!(rtt.interval(ResendInterval::default()), 100_000);
    }

    #[test]
    fn a_timeout_over_a_stream_is_one_to_two_seconds() {
        let mut rtt = RttEstimator::default();
        rtt.sample(3_000);
        let timeouts = [(); 6].map(|()| {
            let timeout = rtt.stream_timeout(ResendInterval::default());
            rtt.back_off();
            timeout / 1_000_000
        });
        assert_eq!(timeouts, [1, 2, 2, 2, 2, 2]);
        rtt.reset_backoff();
        let long = ResendInterval::Fixed(Duration::from_secs(3));
        assert_eq!(rtt.stream_timeout(long), 3_000_000);
        rtt.back_off();
        assert_eq!(rtt.stream_timeout(long), 3_000_000);
    }

    #[test]
    fn the_pause_of_a_stream_is_a_round_trip_and_a_second_at_most() {
        let mut rtt = RttEstimator::default();
        assert_eq!(rtt.stream_pause(ResendInterval::default()), 100_000);
        for _ in 0..200 {
            rtt.sample(200_000);
        }
        assert_eq!(rtt.stream_pause(ResendInterval::default()) / 10_000, 20);
        rtt.sample(8_000_000);
        rtt.back_off();
        assert_eq!(rtt.stream_pause(ResendInterval::default()), 1_000_000);
    }

    #[test]
    fn a_measured_interval_follows_the_samples_within_its_bounds() {
        let mut rtt = RttEstimator::default();
        assert_eq!(rtt.interval(ResendInterval::MEASURED), 1_000_000);
        for _ in 0..200 {
            rtt.sample(40_000);
        }
        let calm = rtt.interval(ResendInterval::MEASURED);
        assert!((39_000..45_000).contains(&calm), "{calm}");
        rtt.back_off();
        assert_eq!(rtt.interval(ResendInterval::MEASURED), 2 * calm);
        for _ in 0..100 {
            rtt.back_off();
        }
        assert_eq!(rtt.interval(ResendInterval::MEASURED), 16 * calm);
        rtt.reset_backoff();
        assert_eq!(rtt.interval(ResendInterval::MEASURED), calm);
        for _ in 0..200 {
            rtt.sample(1);
        }
        assert_eq!(rtt.interval(ResendInterval::MEASURED), 10_000);
        rtt.sample(u32::MAX);
        assert_eq!(rtt.interval(ResendInterval::MEASURED), 1_000_000);
    }
}
