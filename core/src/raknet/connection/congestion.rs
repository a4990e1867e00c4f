//! How much may be in flight: slow start, avoidance, recovery.

use crate::time::Instant;

/// Datagrams of full size in the first window and in the smallest.
const INITIAL_DATAGRAMS: u32 = 10;
const MIN_DATAGRAMS: u32 = 8;
const MAX_WINDOW: u32 = 1 << 28;

/// A window of bytes.
///
/// As in the original (supplement 4.8) the window grows only while the sender uses it, and by a datagram for each one
/// acknowledged, later by a datagram for each window acknowledged. Unlike there, a loss halves the window once a round
/// trip instead of dropping it to one datagram.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Congestion {
    window: u32,
    threshold: u32,
    datagram: u32,
    /// Losses of datagrams sent before are of the congestion that was answered already.
    recovery_from: Instant,
    /// Bytes acknowledged towards the next datagram of growth.
    acknowledged: u32,
}

impl Congestion {
    pub(super) const fn new(datagram: u32) -> Self {
        Self {
            window: INITIAL_DATAGRAMS * datagram,
            threshold: MAX_WINDOW,
            datagram,
            recovery_from: Instant::ZERO,
            acknowledged: 0,
        }
    }

    /// Bytes that may be in flight.
    pub(super) const fn window(&self) -> u32 {
        self.window
    }

    /// A datagram of `bytes` was acknowledged while `in_flight` bytes, it among them, were in flight.
    pub(super) fn on_acknowledged(&mut self, bytes: u32, in_flight: u32) {
        if in_flight.saturating_mul(2) < self.window {
            return;
        }
        let growth = if self.window < self.threshold { bytes } else { self.avoidance_growth(bytes) };
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

    /// A datagram sent at `sent_at` was found lost at `now`.
    pub(super) fn on_lost(&mut self, sent_at: Instant, now: Instant) {
        if sent_at < self.recovery_from {
            return;
        }
        self.recovery_from = now;
        self.threshold = (self.window / 2).max(MIN_DATAGRAMS * self.datagram);
        self.window = self.threshold;
        self.acknowledged = 0;
    }

    /// Nothing came back for several timeouts in a row.
    pub(super) fn on_silence(&mut self) {
        self.threshold = (self.window / 2).max(MIN_DATAGRAMS * self.datagram);
        self.window = MIN_DATAGRAMS * self.datagram;
        self.acknowledged = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATAGRAM: u32 = 1_000;

    #[test]
    fn slow_start_doubles_and_avoidance_adds() {
        let mut congestion = Congestion::new(DATAGRAM);
        let window = congestion.window();
        (0..10).for_each(|_| congestion.on_acknowledged(DATAGRAM, window));
        assert_eq!(congestion.window(), 2 * window);
        congestion.on_lost(Instant::from_micros(5), Instant::from_micros(9));
        let window = congestion.window();
        assert_eq!(window, 10 * DATAGRAM);
        (0..10).for_each(|_| congestion.on_acknowledged(DATAGRAM, window));
        assert_eq!(congestion.window(), window + DATAGRAM);
    }

    #[test]
    fn one_reduction_a_round_trip() {
        let mut congestion = Congestion::new(DATAGRAM);
        (0..90).for_each(|_| congestion.on_acknowledged(DATAGRAM, 1_000 * DATAGRAM));
        congestion.on_lost(Instant::from_micros(5), Instant::from_micros(9));
        congestion.on_lost(Instant::from_micros(8), Instant::from_micros(10));
        assert_eq!(congestion.window(), 50 * DATAGRAM);
        congestion.on_lost(Instant::from_micros(9), Instant::from_micros(12));
        assert_eq!(congestion.window(), 25 * DATAGRAM);
        congestion.on_silence();
        assert_eq!(congestion.window(), MIN_DATAGRAMS * DATAGRAM);
    }

    #[test]
    fn an_unused_window_does_not_grow() {
        let mut congestion = Congestion::new(DATAGRAM);
        let window = congestion.window();
        (0..100).for_each(|_| congestion.on_acknowledged(DATAGRAM, DATAGRAM));
        assert_eq!(congestion.window(), window);
    }
}
