//! NewReno (RFC 6582, RFC 9002 section 7): slow start, congestion avoidance and recovery.
//!
//! The file begins with the events and constants that all congestion controllers share.

use crate::serial::U24;
use crate::time::Instant;

/// The initial window in datagrams (RFC 9002 section 7.2).
pub(in super::super) const INITIAL_DATAGRAMS: u32 = 10;
/// The minimum window in datagrams.
///
/// It is 2 in RFC 9002 section 7.2; `docs/congestion.md` explains the larger value.
pub(super) const MIN_DATAGRAMS: u32 = 8;
/// The maximum window in datagrams: the number of lookups that one acknowledgement may cause.
pub(super) const MAX_DATAGRAMS: u32 = 8_192;

/// The information that an acknowledgement provides about the path.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(
    not(feature = "delay-based"),
    expect(dead_code, reason = "the other congestion control reads less")
)]
pub(in super::super) struct AckSample {
    pub(in super::super) now: Instant,
    /// Newly acknowledged bytes that were in flight.
    pub(in super::super) bytes: u32,
    /// The part of `bytes` that was sent outside a recovery period.
    pub(in super::super) bytes_after_recovery: u32,
    /// Bytes in flight before the acknowledgement.
    pub(in super::super) in_flight: u32,
    /// The highest acknowledged number.
    pub(in super::super) newest: U24,
    /// The number of the next datagram to be sent.
    pub(in super::super) next: U24,
    /// The time since the newest acknowledged datagram was sent, in microseconds.
    pub(in super::super) rtt: u32,
    /// The time between sending the oldest and the newest acknowledged datagram, in microseconds.
    ///
    /// It is a lower bound of the delay with which the peer acknowledged the oldest datagram.
    pub(in super::super) ack_span: u32,
    /// Set if the carrier is a stream.
    pub(in super::super) is_over_stream: bool,
}

/// The mechanism that detected a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum LossTrigger {
    /// By the time threshold after a later datagram was acknowledged (RFC 9002 section 6.1.2).
    ///
    /// An acknowledgement may have been lost instead.
    TimeThreshold,
    /// By the retransmission timeout, without any acknowledgement.
    ///
    /// The acknowledgements may have been lost instead.
    Timeout,
    /// By a negative acknowledgement.
    Nack,
}

/// A datagram that was declared lost.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(
    not(feature = "delay-based"),
    expect(dead_code, reason = "the other congestion control reads less")
)]
pub(in super::super) struct Loss {
    pub(in super::super) now: Instant,
    pub(in super::super) sent_at: Instant,
    pub(in super::super) bytes: u32,
    /// The number of datagrams declared lost before this one, modulo 2^32.
    pub(in super::super) ordinal: u32,
    pub(in super::super) trigger: LossTrigger,
}

/// The growth phase of the window, which determines the pacing rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    SlowStart,
    Steady,
}

/// A congestion window in bytes that is halved on loss.
///
/// As in C++ RakNet (docs/raknet.md#original-window), the window grows only while it is used: by the acknowledged
/// bytes in slow start, and by one datagram per acknowledged window in congestion avoidance. C++ RakNet sets the
/// window to one datagram on a loss; here a loss halves it, at most once per round trip. A reduction is undone if all
/// its losses turn out to be spurious.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NewReno {
    window: u32,
    /// The slow start threshold in bytes.
    ssthresh: u32,
    /// The size of a full datagram in bytes.
    datagram: u32,
    /// The start of the last recovery period. Losses of datagrams sent before it do not reduce the window again.
    recovery_start: Option<Instant>,
    /// Bytes acknowledged in congestion avoidance since the window last grew.
    acked_bytes: u32,
    /// The window and the slow start threshold before the last reduction.
    before: (u32, u32),
    /// The number of losses since the last reduction that have not turned out to be spurious.
    losses: u32,
    /// The ordinal of the loss that caused the last reduction.
    first_loss: u32,
}

impl NewReno {
    pub(super) fn new(datagram: u32) -> Self {
        Self { window: INITIAL_DATAGRAMS * datagram, ssthresh: u32::MAX, datagram, ..Self::default() }
    }

    pub(super) const fn window(&self) -> u32 {
        self.window
    }

    pub(super) const fn pace(&self) -> Pace {
        if self.window < self.ssthresh { Pace::SlowStart } else { Pace::Steady }
    }

    pub(super) fn on_ack(&mut self, sample: &AckSample) {
        if sample.in_flight.saturating_mul(2) < self.window {
            return;
        }
        let growth = match self.pace() {
            Pace::SlowStart => sample.bytes_after_recovery,
            Pace::Steady => self.avoidance_growth(sample.bytes_after_recovery),
        };
        self.window = self.window.saturating_add(growth).min(MAX_DATAGRAMS * self.datagram);
    }

    fn avoidance_growth(&mut self, bytes: u32) -> u32 {
        self.acked_bytes = self.acked_bytes.saturating_add(bytes);
        if self.acked_bytes < self.window {
            return 0;
        }
        self.acked_bytes -= self.window;
        self.datagram
    }

    /// Returns true if a datagram sent at `sent_at` belongs to the recovery period (RFC 9002 appendix B.5).
    ///
    /// Its loss does not reduce the window again, and its acknowledgement does not grow it.
    pub(super) fn is_in_recovery(&self, sent_at: Instant) -> bool {
        self.recovery_start.is_some_and(|start| sent_at <= start)
    }

    pub(super) fn on_lost(&mut self, loss: &Loss) {
        if self.is_in_recovery(loss.sent_at) {
            self.losses += 1;
            return;
        }
        self.before = (self.window, self.ssthresh);
        self.losses = 1;
        self.first_loss = loss.ordinal;
        self.recovery_start = Some(loss.now);
        self.ssthresh = self.half_window();
        self.window = self.ssthresh;
        self.acked_bytes = 0;
    }

    /// Returns half of the window: the loss reduction factor of RFC 9002 section 7.3.2.
    fn half_window(&self) -> u32 {
        (self.window / 2).max(MIN_DATAGRAMS * self.datagram)
    }

    pub(super) fn on_spurious_loss(&mut self, ordinal: u32) {
        let is_of_earlier_reduction = ordinal.wrapping_sub(self.first_loss) > u32::MAX / 2;
        if self.losses == 0 || is_of_earlier_reduction {
            return;
        }
        self.losses -= 1;
        if self.losses == 0 {
            self.window = self.window.max(self.before.0);
            self.ssthresh = self.ssthresh.max(self.before.1);
            self.recovery_start = None;
        }
    }

    pub(super) fn on_persistent_congestion(&mut self) {
        self.ssthresh = self.half_window();
        self.window = MIN_DATAGRAMS * self.datagram;
        self.recovery_start = None;
        self.acked_bytes = 0;
        self.losses = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raknet::connection::congestion::LossTrigger;
    use crate::serial::U24;

    const DATAGRAM: u32 = 1_000;

    fn acknowledge(new_reno: &mut NewReno, times: u32, in_flight: u32) {
        for _ in 0..times {
            new_reno.on_ack(&AckSample {
                now: Instant::ZERO,
                bytes: DATAGRAM,
                bytes_after_recovery: DATAGRAM,
                in_flight,
                newest: U24::new(0),
                next: U24::new(1),
                rtt: 1,
                ack_span: 0,
                is_over_stream: false,
            });
        }
    }

    /// Reports the loss of a datagram sent at `sent_at`, with an ordinal of the same value.
    fn lose(new_reno: &mut NewReno, sent_at: u32, now: u64) {
        let (now, ordinal) = (Instant::from_micros(now), sent_at);
        let sent_at = Instant::from_micros(sent_at.into());
        new_reno.on_lost(&Loss { now, sent_at, bytes: DATAGRAM, ordinal, trigger: LossTrigger::Nack });
    }

    #[test]
    fn slow_start_doubles_the_window_and_congestion_avoidance_adds_a_datagram() {
        let mut new_reno = NewReno::new(DATAGRAM);
        let window = new_reno.window();
        acknowledge(&mut new_reno, 10, window);
        assert_eq!(new_reno.window(), 2 * window);
        lose(&mut new_reno, 5, 9);
        let window = new_reno.window();
        assert_eq!(window, 10 * DATAGRAM);
        acknowledge(&mut new_reno, 10, window);
        assert_eq!(new_reno.window(), window + DATAGRAM);
    }

    #[test]
    fn losses_reduce_the_window_once_per_round_trip() {
        let mut new_reno = NewReno::new(DATAGRAM);
        acknowledge(&mut new_reno, 90, 1_000 * DATAGRAM);
        lose(&mut new_reno, 5, 9);
        lose(&mut new_reno, 8, 10);
        // A datagram sent at the time of the first loss still belongs to the recovery period.
        lose(&mut new_reno, 9, 11);
        assert_eq!(new_reno.window(), 50 * DATAGRAM);
        lose(&mut new_reno, 10, 12);
        assert_eq!(new_reno.window(), 25 * DATAGRAM);
        new_reno.on_persistent_congestion();
        assert_eq!(new_reno.window(), MIN_DATAGRAMS * DATAGRAM);
    }

    /// There is no recovery period before the first loss, or after persistent congestion.
    #[test]
    fn datagrams_sent_before_the_reduction_belong_to_recovery() {
        let at = Instant::from_micros;
        let mut new_reno = NewReno::new(DATAGRAM);
        assert!(!new_reno.is_in_recovery(Instant::ZERO));
        lose(&mut new_reno, 5, 9);
        assert!(new_reno.is_in_recovery(at(9)) && !new_reno.is_in_recovery(at(10)));
        new_reno.on_persistent_congestion();
        assert!(!new_reno.is_in_recovery(at(9)));
    }

    #[test]
    fn an_unused_window_does_not_grow() {
        let mut new_reno = NewReno::new(DATAGRAM);
        let window = new_reno.window();
        acknowledge(&mut new_reno, 100, DATAGRAM);
        assert_eq!(new_reno.window(), window);
    }

    #[test]
    fn a_reduction_is_undone_when_all_losses_were_spurious() {
        let mut new_reno = NewReno::new(DATAGRAM);
        acknowledge(&mut new_reno, 90, 1_000 * DATAGRAM);
        lose(&mut new_reno, 5, 9);
        lose(&mut new_reno, 6, 10);
        new_reno.on_spurious_loss(4);
        new_reno.on_spurious_loss(5);
        assert_eq!(new_reno.window(), 50 * DATAGRAM);
        new_reno.on_spurious_loss(6);
        assert_eq!(new_reno.window(), 100 * DATAGRAM);
        new_reno.on_spurious_loss(6);
        assert_eq!((new_reno.window(), new_reno.pace()), (100 * DATAGRAM, Pace::SlowStart));
    }
}
