//! The RTT estimator, the resend interval derived from it, and the limit of retransmissions.

use core::time::Duration;

use crate::endpoint::MIN_STREAM_TIMEOUT;
use crate::game_protocol::config::ResendInterval;
use crate::time::{Instant, micros};

/// The maximum number of doublings of the interval without an acknowledgement.
///
/// RFC 6298, section 5.5 has no such bound. The bound allows a few more transmissions of a chunk before the connection
/// times out.
const MAX_BACKOFF: u8 = 4;

/// The maximum number of doublings of the interval after spurious retransmissions, which lengthens one millisecond to a
/// second.
const MAX_SPURIOUS_BACKOFF: u8 = 10;

/// The maximum retransmission timeout over a stream in microseconds. A longer resend interval takes precedence.
///
/// Retransmissions are the protocol's only keep-alive, so several must fit into `Config::timeout`.
const MAX_STREAM_TIMEOUT: u32 = 2_000_000;

/// The maximum interval that is not measured: before the first RTT sample, and after timeouts without an
/// acknowledgement, in microseconds.
///
/// RFC 6298, section 2.1 also starts with one second. A longer minimum takes precedence.
const MAX_UNMEASURED: u32 = 1_000_000;

/// The maximum retransmission timeout over datagrams in microseconds. A longer resend interval takes precedence.
const MAX_TIMEOUT: u32 = 4_000_000;

/// Returns the maximum retransmission timeout over datagrams in microseconds, if the connection is lost after `timeout`
/// without packets.
///
/// Three retransmissions fit into a timeout of four seconds or more, and two into a shorter one.
fn longest_interval(timeout: u32) -> u32 {
    (timeout / 4).clamp(MAX_UNMEASURED, MAX_TIMEOUT).min(timeout / 3)
}

/// Returns the minimum and the maximum of an interval in microseconds. The minimum takes precedence.
#[cfg_attr(not(target_pointer_width = "64"), inline(never))]
fn bounds(resend: ResendInterval) -> (u32, u32) {
    let (min, max) = match resend {
        ResendInterval::AtLeast(interval) => (interval, Duration::MAX),
        ResendInterval::Measured { min, max } => (min, max),
    };
    (micros(min).max(1), micros(max))
}

/// The smoothed round-trip time and its variation in microseconds (RFC 6298, section 2).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RttEstimator {
    srtt: u32,
    rttvar: u32,
    backoff: u8,
    /// The number of doublings of the interval after spurious retransmissions.
    spurious_backoff: u8,
    /// The time of the last doubling after a spurious retransmission.
    doubled_at: Instant,
    /// The time of the last sample.
    sampled_at: Instant,
}

impl RttEstimator {
    /// Adds the RTT sample of a chunk that was sent once, at `sent_at`.
    pub(super) fn on_sample(&mut self, now: Instant, sent_at: Instant) {
        self.sample(now.micros_since(sent_at));
        self.sampled_at = now;
        if sent_at >= self.doubled_at {
            self.spurious_backoff = 0;
        }
    }

    /// Doubles the resend interval after a spurious retransmission, at most once per interval.
    ///
    /// If every chunk is retransmitted before its acknowledgement arrives, no acknowledgement yields an RTT sample (RFC
    /// 6298, section 3). The interval then stays longer until a chunk that was sent after the doubling yields a sample.
    pub(super) fn on_spurious_resend(&mut self, now: Instant, resend: ResendInterval, timeout: Duration) {
        if now >= self.doubled_at.plus_micros(self.interval(resend, timeout)) {
            self.spurious_backoff = (self.spurious_backoff + 1).min(MAX_SPURIOUS_BACKOFF);
            self.doubled_at = now;
        }
    }

    fn sample(&mut self, micros: u32) {
        let sample = micros.clamp(1, u32::MAX / 16);
        if self.srtt == 0 {
            self.srtt = sample;
            self.rttvar = sample / 2;
            return;
        }
        self.rttvar = self.rttvar - self.rttvar / 4 + sample.abs_diff(self.srtt) / 4;
        self.srtt = self.srtt - self.srtt / 8 + sample / 8;
    }

    /// Resets the backoff after an acknowledgement.
    pub(super) const fn reset_backoff(&mut self) {
        self.backoff = 0;
    }

    /// Doubles the next resend interval after a timeout (at most [`MAX_BACKOFF`] times).
    pub(super) fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(MAX_BACKOFF);
    }

    pub(super) const fn srtt(&self) -> Duration {
        Duration::from_micros(self.srtt as u64)
    }

    /// Forgets spurious retransmissions, because the path has changed or the connection is closing.
    pub(super) const fn forget_spurious_resends(&mut self) {
        self.spurious_backoff = 0;
    }

    /// Returns the resend interval in microseconds over a path whose losses are only presumed. The connection is lost
    /// after `timeout` without packets.
    pub(super) fn interval(&self, resend: ResendInterval, timeout: Duration) -> u32 {
        let (min, max) = bounds(resend);
        let plain = self.shortest_interval(resend).max(self.variable());
        let timeout = micros(timeout);
        let mut longest = longest_interval(timeout).min(max);
        // A duplicate on the path also counts as a spurious retransmission. The interval is therefore doubled beyond a
        // second only if the RTT is long, or if no chunk has yielded a sample for a connection timeout.
        if self.srtt != 0 && self.doubled_at.micros_since(self.sampled_at) < timeout {
            longest = longest.min(self.variable().saturating_mul(4).max(MAX_UNMEASURED));
        }
        plain.saturating_mul(1 << self.spurious_backoff).min(longest).max(min)
    }

    /// Returns the resend interval in microseconds if a loss is known, or if there is no time to wait for the
    /// acknowledgement.
    pub(super) fn shortest_interval(&self, resend: ResendInterval) -> u32 {
        self.interval_after(resend, self.backoff)
    }

    /// Returns the shortest interval in microseconds after `backoff` timeouts without an acknowledgement.
    fn interval_after(&self, resend: ResendInterval, backoff: u8) -> u32 {
        let (min, max) = bounds(resend);
        if matches!(resend, ResendInterval::AtLeast(_)) {
            return min;
        }
        let max = max.min(MAX_UNMEASURED);
        let plain = if self.srtt == 0 { max } else { self.variable() };
        plain.saturating_mul(1 << backoff).min(max).max(min)
    }

    /// Returns the retransmission timeout of RFC 6298, section 2, in microseconds, without its bounds.
    const fn variable(&self) -> u32 {
        self.srtt.saturating_add(self.rttvar.saturating_mul(4))
    }

    /// Returns the time without acknowledgements after which a stream is assumed to have delivered all its data, in
    /// microseconds.
    ///
    /// If the stream still delivered data, an acknowledgement would be received within this time.
    pub(super) fn stream_pause(&self, resend: ResendInterval) -> u32 {
        // The RTT estimate is bounded, because samples of data that the stream has delayed are long.
        self.interval_after(resend, 0).max(self.variable().min(MIN_STREAM_TIMEOUT))
    }

    /// Returns the retransmission timeout of a chunk over a stream, in microseconds.
    pub(super) fn stream_timeout(&self, resend: ResendInterval) -> u32 {
        let shortest = self.interval_after(resend, 0).max(MIN_STREAM_TIMEOUT);
        shortest.saturating_mul(1 << self.backoff).min(MAX_STREAM_TIMEOUT.max(shortest))
    }
}

/// The minimum number of retransmissions allowed in an interval, which suffices to detect that the remote peer responds
/// again.
const MIN_RESENDS: u16 = 16;

/// The limit of chunks retransmitted in an interval.
///
/// The default resend interval does not back off while nothing is acknowledged. Without a limit, a full window would be
/// retransmitted ten times per second to a peer that has vanished or has no free memory. Without acknowledgements, the
/// limit halves in each interval; each acknowledgement raises it again, as in slow start (RFC 5681, section 3.1).
#[derive(Clone, Copy, Debug)]
pub(super) struct ResendLimit {
    limit: u16,
    /// The number of chunks that may still be retransmitted before `ends_at`.
    left: u16,
    resent: u16,
    started_at: Instant,
    ends_at: Instant,
}

impl Default for ResendLimit {
    fn default() -> Self {
        Self::NONE
    }
}

impl ResendLimit {
    pub(super) const NONE: Self = Self {
        limit: u16::MAX,
        left: u16::MAX,
        resent: 0,
        started_at: Instant::ZERO,
        ends_at: Instant::ZERO,
    };

    /// Returns the earliest time at which the limit allows another retransmission.
    pub(super) const fn earliest(&self) -> Instant {
        if self.left == 0 { self.ends_at } else { Instant::ZERO }
    }

    /// Counts a chunk retransmitted at `now`, and starts another interval if the last one has ended.
    pub(super) fn count(&mut self, now: Instant, interval_micros: u32, last_acked_at: Instant) {
        if now >= self.ends_at {
            if self.resent > 0 && last_acked_at < self.started_at {
                self.limit = (self.limit.min(self.resent) / 2).max(MIN_RESENDS);
            }
            self.started_at = now;
            self.ends_at = now.plus_micros(interval_micros);
            self.left = self.limit;
            self.resent = 0;
        }
        self.left = self.left.saturating_sub(1);
        self.resent = self.resent.saturating_add(1);
    }

    /// Raises the limit by two chunks after an acknowledgement, so that it doubles with each round trip.
    pub(super) const fn on_ack(&mut self) {
        self.limit = self.limit.saturating_add(1);
        self.left = self.left.saturating_add(2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: u32 = 100_000;
    const TIMEOUT: Duration = Duration::from_secs(15);

    /// Retransmits up to `due` chunks in the interval that starts at `now`; returns how many the limit allowed.
    fn resend(limit: &mut ResendLimit, now: Instant, due: u16, last_acked_at: Instant) -> u16 {
        let mut resent = 0;
        while resent < due && limit.earliest() <= now {
            limit.count(now, INTERVAL, last_acked_at);
            resent += 1;
        }
        resent
    }

    #[test]
    fn the_resend_limit_halves_without_acknowledgements_and_doubles_with_them() {
        let mut limit = ResendLimit::default();
        let at = |round: u32| Instant::ZERO.plus_micros(1 + round * INTERVAL);
        let silent =
            [0, 1, 2, 3, 4, 5, 6, 7].map(|round| resend(&mut limit, at(round), 1_000, Instant::ZERO));
        assert_eq!(silent, [1_000, 500, 250, 125, 62, 31, 16, 16]);
        (0..16).for_each(|_| limit.on_ack());
        assert_eq!(resend(&mut limit, at(7), 1_000, at(7)), 32);
        assert_eq!(resend(&mut limit, at(8), 1_000, at(7)), 32);
    }

    #[test]
    fn retransmissions_are_not_limited_while_acknowledgements_arrive() {
        let mut limit = ResendLimit::default();
        for round in 0..8 {
            let now = Instant::ZERO.plus_micros(1 + round * INTERVAL);
            assert_eq!(resend(&mut limit, now, 1_000, now), 1_000);
        }
    }

    #[test]
    fn contradictory_timeout_bounds_yield_the_minimum() {
        let (min, max) = (Duration::from_millis(20), Duration::from_millis(10));
        assert_eq!(RttEstimator::default().interval(ResendInterval::Measured { min, max }, TIMEOUT), 20_000);
        let never = ResendInterval::Measured { min: Duration::ZERO, max: Duration::ZERO };
        assert_eq!(RttEstimator::default().interval(never, TIMEOUT), 1);
    }

    #[test]
    fn short_round_trips_and_timeouts_do_not_change_the_default_interval() {
        let mut rtt = RttEstimator::default();
        rtt.sample(3_000);
        rtt.back_off();
        assert_eq!(rtt.interval(ResendInterval::default(), TIMEOUT), 100_000);
    }

    #[test]
    fn the_interval_is_the_retransmission_timeout_of_a_long_path_and_at_most_a_quarter_of_the_connection_timeout()
     {
        for resend in [ResendInterval::default(), ResendInterval::MEASURED] {
            let interval_at = |rtt_micros, timeout| {
                let mut rtt = RttEstimator::default();
                (0..200).for_each(|_| rtt.sample(rtt_micros));
                rtt.interval(resend, timeout)
            };
            for micros in [250_000, 2_500_000] {
                let interval = interval_at(micros, TIMEOUT);
                assert!((micros..micros + 10_000).contains(&interval), "{resend:?}: {interval}");
            }
            for (seconds, most) in
                [(0, 0), (2, 666_666), (3, 1_000_000), (4, 1_000_000), (15, 3_750_000), (60, 4_000_000)]
            {
                let shortest = if resend == ResendInterval::MEASURED { 10_000 } else { 100_000 };
                let interval = interval_at(9_000_000, Duration::from_secs(seconds));
                assert_eq!(interval, most.max(shortest), "{resend:?} with a timeout of {seconds} s");
            }
            assert_eq!(interval_at(9_000_000, Duration::MAX), 4_000_000);
        }
    }

    #[test]
    fn a_minimum_above_the_bound_takes_precedence() {
        let min = Duration::from_secs(5);
        for resend in [ResendInterval::AtLeast(min), ResendInterval::Measured { min, max: min }] {
            assert_eq!(RttEstimator::default().interval(resend, TIMEOUT), 5_000_000, "{resend:?}");
        }
    }

    #[test]
    fn spurious_resends_double_the_interval_until_a_later_chunk_yields_a_sample() {
        for (resend, start) in [(ResendInterval::default(), 100), (ResendInterval::MEASURED, 30)] {
            let at = |millis: u32| Instant::ZERO.plus_micros(10_000_000 + millis * 1_000);
            let mut rtt = RttEstimator::default();
            (0..200).for_each(|_| rtt.on_sample(at(30), at(0)));
            let mut intervals = [0; 6];
            for interval in &mut intervals {
                let now = rtt.doubled_at.max(at(100)).plus_micros(rtt.interval(resend, TIMEOUT));
                rtt.on_spurious_resend(now, resend, TIMEOUT);
                rtt.on_spurious_resend(now.plus_micros(1_000), resend, TIMEOUT);
                *interval = rtt.interval(resend, TIMEOUT) / 1_000;
            }
            assert_eq!(
                intervals,
                [2, 4, 8, 16, 32, 64].map(|factor| (factor * start).min(1_000)),
                "{resend:?}"
            );
            rtt.on_sample(rtt.doubled_at.plus_micros(30_000), rtt.doubled_at);
            assert!(rtt.interval(resend, TIMEOUT) < 2 * start * 1_000, "{resend:?}");
        }
    }

    #[test]
    fn a_sample_of_a_chunk_sent_before_a_doubling_does_not_undo_it() {
        let at = |millis: u32| Instant::ZERO.plus_micros(10_000_000 + millis * 1_000);
        let mut rtt = RttEstimator::default();
        rtt.on_sample(at(30), at(0));
        rtt.on_spurious_resend(at(200), ResendInterval::default(), TIMEOUT);
        rtt.on_sample(at(230), at(199));
        assert_eq!(rtt.interval(ResendInterval::default(), TIMEOUT), 200_000);
        rtt.on_sample(at(240), at(210));
        assert_eq!(rtt.interval(ResendInterval::default(), TIMEOUT), 100_000);
    }

    #[test]
    fn the_timeout_over_a_stream_is_one_to_two_seconds_or_a_longer_interval() {
        let mut rtt = RttEstimator::default();
        rtt.sample(3_000);
        let timeouts = [(); 6].map(|()| {
            let timeout = rtt.stream_timeout(ResendInterval::default());
            rtt.back_off();
            timeout / 1_000_000
        });
        assert_eq!(timeouts, [1, 2, 2, 2, 2, 2]);
        rtt.reset_backoff();
        let long = ResendInterval::AtLeast(Duration::from_secs(3));
        assert_eq!(rtt.stream_timeout(long), 3_000_000);
        rtt.back_off();
        assert_eq!(rtt.stream_timeout(long), 3_000_000);
    }

    #[test]
    fn the_stream_pause_is_at_most_one_second() {
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
    fn a_measured_interval_follows_rtt_samples_and_backoff_within_its_bounds() {
        let mut rtt = RttEstimator::default();
        assert_eq!(rtt.interval(ResendInterval::MEASURED, TIMEOUT), 1_000_000);
        for _ in 0..200 {
            rtt.sample(40_000);
        }
        let calm = rtt.interval(ResendInterval::MEASURED, TIMEOUT);
        assert!((39_000..45_000).contains(&calm), "{calm}");
        rtt.back_off();
        assert_eq!(rtt.interval(ResendInterval::MEASURED, TIMEOUT), 2 * calm);
        for _ in 0..100 {
            rtt.back_off();
        }
        assert_eq!(rtt.interval(ResendInterval::MEASURED, TIMEOUT), 16 * calm);
        rtt.reset_backoff();
        assert_eq!(rtt.interval(ResendInterval::MEASURED, TIMEOUT), calm);
        for _ in 0..200 {
            rtt.sample(1);
        }
        assert_eq!(rtt.interval(ResendInterval::MEASURED, TIMEOUT), 10_000);
        rtt.sample(300_000);
        (0..100).for_each(|_| rtt.back_off());
        assert_eq!(rtt.interval(ResendInterval::MEASURED, TIMEOUT), 1_000_000);
        rtt.sample(u32::MAX);
        assert_eq!(rtt.interval(ResendInterval::MEASURED, TIMEOUT), 3_750_000);
    }
}
