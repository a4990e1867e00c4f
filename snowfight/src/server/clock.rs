//! The schedule of ticks.

use rakwire::Instant;

use crate::world::TICKS_PER_SECOND;

const MICROS: u64 = 1_000_000;
/// The maximum number of ticks that are caught up after a delay; further due ticks are skipped (docs/game.md#timing).
const MAX_BACKLOG: u64 = TICKS_PER_SECOND as u64;

/// Schedules sixty ticks per second without drift, starting at the first call.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Clock {
    start: Option<Instant>,
    /// The number of ticks that were run or skipped so far.
    ticks: u64,
}

impl Clock {
    /// Returns the number of ticks that are due, at most one second's worth, and counts them as run.
    pub(super) fn take_due(&mut self, now: Instant) -> u64 {
        let start = *self.start.get_or_insert(now);
        let passed = now.as_micros().saturating_sub(start.as_micros());
        let ticks = (u128::from(passed) * u128::from(TICKS_PER_SECOND) / u128::from(MICROS)) as u64;
        let due = ticks.saturating_sub(self.ticks);
        self.ticks = self.ticks.max(ticks);
        due.min(MAX_BACKLOG)
    }

    /// Returns the time of the next tick; the first tick is due immediately.
    pub(super) fn next(&self) -> Instant {
        let Some(start) = self.start else { return Instant::ZERO };
        let next = u128::from(self.ticks + 1) * u128::from(MICROS);
        let micros = next.div_ceil(u128::from(TICKS_PER_SECOND)) as u64;
        Instant::from_micros(start.as_micros().saturating_add(micros))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_run_sixty_times_a_second_without_drift() {
        let mut clock = Clock::default();
        let mut now = Instant::from_micros(5);
        assert_eq!((clock.next(), clock.take_due(now)), (Instant::ZERO, 0));
        for _ in 0..600 {
            now = clock.next();
            assert_eq!(clock.take_due(Instant::from_micros(now.as_micros() - 1)), 0);
            assert_eq!(clock.take_due(now), 1);
        }
        assert_eq!(now, Instant::from_micros(10_000_005));
    }

    #[test]
    fn backlog_beyond_a_second_is_skipped() {
        let mut clock = Clock::default();
        clock.take_due(Instant::ZERO);
        assert_eq!(clock.take_due(Instant::from_micros(500_000)), 30);
        assert_eq!(clock.take_due(Instant::from_micros(90_000_000)), 60);
        assert_eq!(clock.take_due(Instant::from_micros(90_000_000)), 0);
        assert_eq!(clock.next(), Instant::from_micros(90_016_667));
        assert_eq!(clock.take_due(Instant::from_micros(u64::MAX)), 60);
    }
}
