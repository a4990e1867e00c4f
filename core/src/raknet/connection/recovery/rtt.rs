//! The round-trip time and the timeouts that follow from it (docs/raknet.md#round-trip).

use crate::endpoint::{Carrier, MIN_STREAM_TIMEOUT};
use crate::raknet::config::Config;
use crate::time::micros;

/// What a timeout allows for the other peer's wait before it acknowledges, in microseconds (docs/raknet.md#round-trip;
/// `max_ack_delay` in RFC 9002 section 6.2.1).
const MAX_ACK_DELAY: u32 = 30_000;
/// What the probe timeout allows for it, in microseconds. Peers acknowledge after 10 ms (docs/raknet.md#acknowledgements),
/// and a probe that leaves too early costs two datagrams and not the window, so less will do.
const PROBE_ACK_DELAY: u32 = 15_000;
/// The inverse of the gain of both averages: the original's (docs/raknet.md#round-trip), where RFC 6298 has 1/8 and
/// 1/4.
const GAIN: u32 = 20;

/// The round-trip time in microseconds: the averages of RFC 6298 section 2, the lowest sample and the latest one.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct RttEstimator {
    srtt: u32,
    rttvar: u32,
    min_rtt: u32,
    latest: u32,
}

impl RttEstimator {
    pub(super) fn sample(&mut self, micros: u32) {
        let rtt = micros.clamp(1, u32::MAX / 16);
        if self.srtt == 0 {
            *self = Self { srtt: rtt, rttvar: rtt / 2, min_rtt: rtt, latest: rtt };
            return;
        }
        self.latest = rtt;
        self.min_rtt = self.min_rtt.min(rtt);
        let difference = rtt.abs_diff(self.srtt);
        self.srtt = smooth(self.srtt, rtt);
        self.rttvar = smooth(self.rttvar, difference);
    }

    /// Whether there was a sample.
    pub(in super::super) const fn is_known(&self) -> bool {
        self.srtt != 0
    }

    /// In microseconds; zero before the first sample.
    pub(in super::super) const fn srtt(&self) -> u32 {
        self.srtt
    }

    /// In microseconds; zero before the first sample.
    pub(super) const fn min_rtt(&self) -> u32 {
        self.min_rtt
    }

    /// In microseconds; zero before the first sample.
    pub(super) const fn latest(&self) -> u32 {
        self.latest
    }

    /// The probe timeout in microseconds, similar to RFC 9002 section 6.2.1: after it the oldest datagrams are sent again to
    /// elicit an acknowledgement.
    pub(super) fn probe_timeout(&self, config: &Config) -> u32 {
        let plain = self.srtt.saturating_add(4 * self.rttvar).saturating_add(PROBE_ACK_DELAY);
        self.bounded(plain, config)
    }

    /// The retransmission timeout in microseconds (docs/raknet.md#round-trip), doubled `backoff` times (RFC 6298
    /// section 5.5): after it every datagram counts as lost.
    pub(super) fn timeout(&self, config: &Config, backoff: u8) -> u32 {
        let plain = (2 * self.srtt).saturating_add(4 * self.rttvar).saturating_add(MAX_ACK_DELAY);
        self.bounded(plain.saturating_mul(1 << backoff.min(config.resend_backoff).min(16)), config)
    }

    fn bounded(&self, plain: u32, config: &Config) -> u32 {
        let most = micros(config.max_resend_timeout);
        let timeout = if self.is_known() { plain } else { most };
        let least = match config.carrier {
            Carrier::Datagrams => micros(config.min_resend_timeout),
            Carrier::Stream => micros(config.min_resend_timeout).max(MIN_STREAM_TIMEOUT),
        };
        timeout.max(least).min(most)
    }
}

/// An average after another sample.
const fn smooth(average: u32, sample: u32) -> u32 {
    if sample >= average { average + (sample - average) / GAIN } else { average - (average - sample) / GAIN }
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
        let mut rtt = RttEstimator::default();
        assert_eq!(rtt.timeout(&config, 0), millis(2_000));
        assert_eq!(rtt.probe_timeout(&config), millis(2_000));
        rtt.sample(millis(20));
        assert_eq!(rtt.timeout(&config, 0), millis(4 * 20 + 30));
        assert_eq!(rtt.probe_timeout(&config), millis(3 * 20 + 15));
        for _ in 0..500 {
            rtt.sample(millis(20));
        }
        assert!(rtt.timeout(&config, 0) < millis(72));
        assert!(rtt.timeout(&config, 1) > millis(138));
        assert_eq!(rtt.timeout(&config, 200), rtt.timeout(&config, 4));
        config.resend_backoff = 0;
        assert_eq!(rtt.timeout(&config, 200), rtt.timeout(&config, 0));
        config.min_resend_timeout = Duration::from_secs(1);
        assert_eq!(rtt.timeout(&config, 0), millis(1_000));
        config.max_resend_timeout = Duration::from_millis(60);
        assert_eq!(rtt.timeout(&config, 4), millis(60));
    }

    #[test]
    fn absurd_samples_do_not_overflow() {
        let mut rtt = RttEstimator::default();
        for _ in 0..100 {
            rtt.sample(u32::MAX);
            rtt.sample(0);
        }
        assert!(rtt.timeout(&config(), 4) <= millis(2_000));
        assert!(rtt.probe_timeout(&config()) <= millis(2_000));
    }
}
