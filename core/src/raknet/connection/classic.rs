//! The classic window: slow start, avoidance, recovery.

use super::congestion::{Acknowledged, INITIAL_DATAGRAMS, Loss, MIN_DATAGRAMS, Pace};
use crate::time::Instant;

/// No window is larger than this; it only keeps the arithmetic from overflowing.
const MAX_WINDOW: u32 = 1 << 28;

/// A window of bytes that every loss halves.
///
/// As in the original (supplement 4.8) the window grows only while the sender uses it, and by a datagram for each one
/// acknowledged, later by a datagram for each window acknowledged. Unlike there, a loss halves the window once a round
/// trip instead of dropping it to one datagram, and a loss that was none is taken back.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Classic {
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

impl Classic {
    pub(super) fn new(datagram: u32) -> Self {
        Self { window: INITIAL_DATAGRAMS * datagram, threshold: MAX_WINDOW, datagram, ..Self::default() }
    }

    pub(super) const fn window(&self) -> u32 {
        self.window
    }

    pub(super) const fn pace(&self) -> Pace {
        if self.window < self.threshold { Pace::Searching } else { Pace::Steady }
    }

    pub(super) fn on_acknowledged(&mut self, news: &Acknowledged) {
        if news.in_flight.saturating_mul(2) < self.window {
            return;
        }
        let growth = match self.pace() {
            Pace::Searching => news.bytes,
            Pace::Steady => self.avoidance_growth(news.bytes),
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

    pub(super) fn on_found(&mut self, ordinal: u32) {
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

    pub(super) fn on_silence(&mut self) {
        self.threshold = (self.window / 2).max(MIN_DATAGRAMS * self.datagram);
        self.window = MIN_DATAGRAMS * self.datagram;
        self.acknowledged = 0;
        self.losses = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raknet::connection::congestion::Evidence;
    use crate::serial::U24;

    const DATAGRAM: u32 = 1_000;

    fn acknowledge(classic: &mut Classic, times: u32, in_flight: u32) {
        for _ in 0..times {
            classic.on_acknowledged(&Acknowledged {
                now: Instant::ZERO,
                bytes: DATAGRAM,
                in_flight,
                newest: U24::new(0),
                next: U24::new(1),
                round_trip: 1,
                span: 0,
            });
        }
    }

    /// The ordinal of the loss is the time of sending.
    fn lose(classic: &mut Classic, sent_at: u32, now: u64) {
        let (now, ordinal) = (Instant::from_micros(now), sent_at);
        let sent_at = Instant::from_micros(sent_at.into());
        classic.on_lost(&Loss { now, sent_at, bytes: DATAGRAM, ordinal, evidence: Evidence::Missed });
    }

    #[test]
    fn slow_start_doubles_and_avoidance_adds() {
        let mut classic = Classic::new(DATAGRAM);
        let window = classic.window();
        acknowledge(&mut classic, 10, window);
        assert_eq!(classic.window(), 2 * window);
        lose(&mut classic, 5, 9);
        let window = classic.window();
        assert_eq!(window, 10 * DATAGRAM);
        acknowledge(&mut classic, 10, window);
        assert_eq!(classic.window(), window + DATAGRAM);
    }

    #[test]
    fn one_reduction_a_round_trip() {
        let mut classic = Classic::new(DATAGRAM);
        acknowledge(&mut classic, 90, 1_000 * DATAGRAM);
        lose(&mut classic, 5, 9);
        lose(&mut classic, 8, 10);
        assert_eq!(classic.window(), 50 * DATAGRAM);
        lose(&mut classic, 9, 12);
        assert_eq!(classic.window(), 25 * DATAGRAM);
        classic.on_silence();
        assert_eq!(classic.window(), MIN_DATAGRAMS * DATAGRAM);
    }

    #[test]
    fn an_unused_window_does_not_grow() {
        let mut classic = Classic::new(DATAGRAM);
        let window = classic.window();
        acknowledge(&mut classic, 100, DATAGRAM);
        assert_eq!(classic.window(), window);
    }

    #[test]
    fn a_reduction_is_taken_back_when_all_its_losses_were_none() {
        let mut classic = Classic::new(DATAGRAM);
        acknowledge(&mut classic, 90, 1_000 * DATAGRAM);
        lose(&mut classic, 5, 9);
        lose(&mut classic, 6, 10);
        classic.on_found(4);
        classic.on_found(5);
        assert_eq!(classic.window(), 50 * DATAGRAM);
        classic.on_found(6);
        assert_eq!(classic.window(), 100 * DATAGRAM);
        classic.on_found(6);
        assert_eq!((classic.window(), classic.pace()), (100 * DATAGRAM, Pace::Searching));
    }
}
