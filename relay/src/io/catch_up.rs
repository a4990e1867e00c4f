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
            None if now.saturating_duration_since(due) >= LATE => {
                self.0 = Some(now + TIME);
                false
            }
            Some(_) | None => {
                self.0 = None;
                true
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
}
