//! What has arrived is read before time passes: after a pause of the process or of its machine, whoever kept sending is not
//! silent.

use std::time::{Duration, Instant};

/// A timer this late shows that nothing ran here: a busy relay is late by a few milliseconds.
const LATE: Duration = Duration::from_millis(250);
/// How long the tasks that read have then. It is many times what they take to empty the buffers of the system.
const TIME: Duration = Duration::from_millis(100);

/// Lets a timer that is late wait for what has to be read first, once.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CatchUp(Option<Instant>);

impl CatchUp {
    /// Whether what was due at `due` may happen now.
    pub(crate) fn is_over(&mut self, due: Instant, now: Instant) -> bool {
        match self.0 {
            Some(until) if now < until => false,
            // What came due later than that has not waited: what was read moved a deadline, and there was another pause.
            Some(until) if due <= until => {
                self.0 = None;
                true
            }
            Some(_) | None => {
                let is_late = now.saturating_duration_since(due) >= LATE;
                self.0 = is_late.then(|| now + TIME);
                !is_late
            }
        }
    }

    /// When to look again at what is due at `due`.
    pub(crate) fn postponed(&self, due: Instant) -> Instant {
        self.0.map_or(due, |until| until.max(due))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_timer_waits_once_and_one_in_time_does_not() {
        let due = Instant::now();
        let mut catch_up = CatchUp::default();
        assert!(catch_up.is_over(due, due + LATE / 2));
        let late = due + LATE;
        assert!(!catch_up.is_over(due, late));
        assert_eq!(catch_up.postponed(due), late + TIME);
        assert!(!catch_up.is_over(due, late + TIME / 2));
        assert!(catch_up.is_over(due, late + TIME));
        assert_eq!(catch_up.postponed(due), due);
    }

    #[test]
    fn a_second_pause_is_waited_out_although_the_first_one_left_nothing_due() {
        let due = Instant::now();
        let mut catch_up = CatchUp::default();
        assert!(!catch_up.is_over(due, due + LATE));
        // What was read meanwhile has moved the deadline, which is met late again.
        let moved = due + Duration::from_secs(10);
        let late = moved + LATE;
        assert!(!catch_up.is_over(moved, late));
        assert_eq!(catch_up.postponed(moved), late + TIME);
        assert!(catch_up.is_over(moved, late + TIME));
        // One that is met in time waits for nothing.
        assert!(!catch_up.is_over(due, due + LATE));
        assert!(catch_up.is_over(moved, moved));
    }
}
