//! The round-trip time and what follows from it (supplement 4.7).

use crate::raknet::config::Config;
use crate::time::micros;

/// Smoothed round-trip time and its rttvar, in microseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RttEstimator {
    srtt: u32,
    rttvar: u32,
    min_rtt: u32,
}

/// What is added to each timeout for what the other peer may wait before it acknowledges, in microseconds.
const ACK_DELAY_ALLOWANCE: u32 = 30_000;

impl RttEstimator {
    pub(super) fn sample(&mut self, micros: u32) {
        let rtt = micros.clamp(1, u32::MAX / 16);
        if self.srtt == 0 {
            *self = Self { srtt: rtt, rttvar: rtt / 2, min_rtt: rtt };
            return;
        }
        self.min_rtt = self.min_rtt.min(rtt);
        let difference = rtt.abs_diff(self.srtt);
        self.srtt = step(self.srtt, rtt);
        self.rttvar = step(self.rttvar, difference);
    }

    pub(super) const fn is_known(&self) -> bool {
        self.srtt != 0
    }

    /// In microseconds; zero before the first sample.
    pub(super) const fn srtt(&self) -> u32 {
        self.srtt
    }

    /// In microseconds; zero before the first sample.
    pub(super) const fn min_rtt(&self) -> u32 {
        self.min_rtt
    }

    /// After how many microseconds a datagram without an answer is sent again to find out, if nothing else is known of it.
    pub(super) fn probe_timeout(&self, config: &Config) -> u32 {
        let plain = self.srtt.saturating_add(4 * self.rttvar).saturating_add(ACK_DELAY_ALLOWANCE / 2);
        self.bounded(plain, config)
    }

    /// After how many microseconds a datagram without an answer counts as lost, doubled `backoff` times.
    pub(super) fn timeout(&self, config: &Config, backoff: u8) -> u32 {
        let plain = (2 * self.srtt).saturating_add(4 * self.rttvar).saturating_add(ACK_DELAY_ALLOWANCE);
        self.bounded(plain.saturating_mul(1 << backoff.min(config.resend_backoff).min(16)), config)
    }

    fn bounded(&self, plain: u32, config: &Config) -> u32 {
        let most = micros(config.max_resend_timeout);
        let timeout = if self.is_known() { plain } else { most };
        timeout.max(micros(config.min_resend_timeout)).min(most)
    }
}

/// A twentieth of the way from `from` to `to`.
const fn step(from: u32, to: u32) -> u32 {
    if to >= from { from + (to - from) / 20 } else { from - (from - to) / 20 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;

    fn millis(millis: u64) -> u32 {
        micros(Duration::from_millis(millis))
    }

    fn config() -> Config {
        let mut config = Config::new([0; 32]);
        config.min_resend_timeout = Duration::ZERO;
        config
    }

    #[test]
    fn the_timeout_follows_the_samples() {
        let mut config = config();
        let mut round_trip = RttEstimator::default();
        assert_eq!(round_trip.timeout(&config, 0), millis(2_000));
        assert_eq!(round_trip.probe_timeout(&config), millis(2_000));
        round_trip.sample(millis(20));
        assert_eq!(round_trip.timeout(&config, 0), millis(4 * 20 + 30));
        assert_eq!(round_trip.probe_timeout(&config), millis(3 * 20 + 15));
        for _ in 0..500 {
            round_trip.sample(millis(20));
        }
        assert!(round_trip.timeout(&config, 0) < millis(72));
        assert!(round_trip.timeout(&config, 1) > millis(138));
        assert_eq!(round_trip.timeout(&config, 200), round_trip.timeout(&config, 4));
        config.resend_backoff = 0;
        assert_eq!(round_trip.timeout(&config, 200), round_trip.timeout(&config, 0));
        config.min_resend_timeout = Duration::from_secs(1);
        assert_eq!(round_trip.timeout(&config, 0), millis(1_000));
        config.max_resend_timeout = Duration::from_millis(60);
        assert_eq!(round_trip.timeout(&config, 4), millis(60));
    }

    #[test]
    fn absurd_samples_do_not_overflow() {
        let mut round_trip = RttEstimator::default();
        for _ in 0..100 {
            round_trip.sample(u32::MAX);
            round_trip.sample(0);
        }
        assert!(round_trip.timeout(&config(), 4) <= millis(2_000));
        assert!(round_trip.probe_timeout(&config()) <= millis(2_000));
    }
}
