//! The new_reno window: slow start, avoidance, recovery.

use super::congestion::{AckSample, INITIAL_DATAGRAMS, Loss, MIN_DATAGRAMS, Pace};
use crate::time::Instant;

/// No window is larger than this; it only keeps the arithmetic from overflowing.
const MAX_WINDOW: u32 = 1 << 28;

/// A window of bytes that every loss halves.
///
/// As in the original (supplement 4.8) the window grows only while the sender uses it, and by a datagram for each one
/// acknowledged, later by a datagram for each window acknowledged. Unlike there, a loss halves the window once a round
/// trip instead of dropping it to one datagram, and a loss that was none is taken back.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NewReno {
    window: u32,
    threshold: u32,
    datagram: u32,
    /// Losses of datagrams sent before are of the congestion that was answered already.
    recovery_from: Instant,
    /// Bytes acknowledged towards the next datagram of growth.
    acknowledged: u32,
    /// Window and threshold before the last reduction, and the losses since then that nobody took back.
    before: (u32, u32),
    losses: u32,
    first_loss: u32,
}

impl NewReno {
    pub(super) fn new(datagram: u32) -> Self {
        Self { window: INITIAL_DATAGRAMS * datagram, threshold: MAX_WINDOW, datagram, ..Self::default() }
    }

    pub(super) const fn window(&self) -> u32 {
        self.window
    }

    pub(super) const fn pace(&self) -> Pace {
        if self.window < self.threshold { Pace::SlowStart } else { Pace::Steady }
    }

    pub(super) fn on_acknowledged(&mut self, sample: &AckSample) {
        if sample.in_flight.saturating_mul(2) < self.window {
            return;
        }
        let growth = match self.pace() {
            Pace::SlowStart => sample.bytes,
            Pace::Steady => self.avoidance_growth(sample.bytes),
        };
        self.window = self.window.saturating_add(growth).min(MAX_WINDOW);
    }

    fn avoidance_growth(&mut self, bytes: u32) -> u32 {
        self.acknowledged = self.acknowledged.saturating_add(bytes);
        if self.acknowledged < self.window {
            return 0;
        }
        self.acknowledged -= self.window;
        self.datagram
    }

    pub(super) fn on_lost(&mut self, loss: &Loss) {
        if loss.sent_at < self.recovery_from {
            self.losses += 1;
            return;
        }
        self.before = (self.window, self.threshold);
        self.losses = 1;
        self.first_loss = loss.ordinal;
        self.recovery_from = loss.now;
        self.threshold = (self.window / 2).max(MIN_DATAGRAMS * self.datagram);
        self.window = self.threshold;
        self.acknowledged = 0;
    }

    pub(super) fn on_spurious_loss(&mut self, ordinal: u32) {
        let before_this_reduction = ordinal.wrapping_sub(self.first_loss) > u32::MAX / 2;
        if self.losses == 0 || before_this_reduction {
            return;
        }
        self.losses -= 1;
        if self.losses == 0 {
            self.window = self.window.max(self.before.0);
            self.threshold = self.threshold.max(self.before.1);
            self.recovery_from = Instant::ZERO;
        }
    }

    pub(super) fn on_persistent_congestion(&mut self) {
        self.threshold = (self.window / 2).max(MIN_DATAGRAMS * self.datagram);
        self.window = MIN_DATAGRAMS * self.datagram;
        self.acknowledged = 0;
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
            new_reno.on_acknowledged(&AckSample {
                now: Instant::ZERO,
                bytes: DATAGRAM,
                in_flight,
                newest: U24::new(0),
                next: U24::new(1),
                round_trip: 1,
                ack_span: 0,
            });
        }
    }

    /// The ordinal of the loss is the time of sending.
    fn lose(new_reno: &mut NewReno, sent_at: u32, now: u64) {
        let (now, ordinal) = (Instant::from_micros(now), sent_at);
        let sent_at = Instant::from_micros(sent_at.into());
        new_reno.on_lost(&Loss { now, sent_at, bytes: DATAGRAM, ordinal, trigger: LossTrigger::Nack });
    }

    #[test]
    fn slow_start_doubles_and_avoidance_adds() {
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
    fn one_reduction_a_round_trip() {
        let mut new_reno = NewReno::new(DATAGRAM);
        acknowledge(&mut new_reno, 90, 1_000 * DATAGRAM);
        lose(&mut new_reno, 5, 9);
        lose(&mut new_reno, 8, 10);
        assert_eq!(new_reno.window(), 50 * DATAGRAM);
        lose(&mut new_reno, 9, 12);
        assert_eq!(new_reno.window(), 25 * DATAGRAM);
        new_reno.on_persistent_congestion();
        assert_eq!(new_reno.window(), MIN_DATAGRAMS * DATAGRAM);
    }

    #[test]
    fn an_unused_window_does_not_grow() {
        let mut new_reno = NewReno::new(DATAGRAM);
        let window = new_reno.window();
        acknowledge(&mut new_reno, 100, DATAGRAM);
        assert_eq!(new_reno.window(), window);
    }

    #[test]
    fn a_reduction_is_taken_back_when_all_its_losses_were_none() {
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
