//! Estimates how long the rest of a session takes.

use super::history::History;
use super::step::Step;
use crate::core_only::Effort;

/// The number of runs to which `Step::usual_seconds` refers.
const USUAL_RUNS: u32 = 5;
/// The factor by which a quick measurement is faster than a full one.
const QUICK: f64 = 40.0;

/// The inputs of the estimate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Estimate {
    pub(super) effort: Effort,
    pub(super) runs: u32,
}

impl Estimate {
    /// Returns the expected duration of a step in seconds, based on its last measurement or on its usual duration.
    fn seconds(self, step: Step, history: &History) -> f64 {
        let usual = match self.effort {
            Effort::Full => step.usual_seconds() / f64::from(step.rounds(USUAL_RUNS)),
            Effort::Quick => step.usual_seconds() / QUICK,
        };
        f64::from(step.rounds(self.runs)) * history.seconds_per_round(step).unwrap_or(usual)
    }

    /// Formats the name and the expected duration of the next step, and the expected time until the end of the session.
    pub(super) fn line(self, at: usize, steps: &[Step], history: &History) -> String {
        let rest = || steps.iter().skip(at);
        let seconds = |step: &Step| self.seconds(*step, history);
        let next = rest().next().map_or("nothing", |step| step.name());
        let (first, all) = (rest().take(1).map(seconds).sum(), rest().map(seconds).sum());
        format!(
            "[{} of {}] {next}: about {}, and {} until the end",
            at + 1,
            steps.len(),
            in_words(first),
            in_words(all)
        )
    }
}

fn in_words(seconds: f64) -> String {
    let seconds = seconds.round() as u64;
    match (seconds / 60, seconds % 60) {
        (0, seconds) => format!("{seconds} s"),
        (minutes, seconds) => format!("{minutes} min {seconds} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_of_a_step_is_its_last_duration_per_round() {
        let full = Estimate { effort: Effort::Full, runs: 5 };
        let mut history = History::default();
        assert_eq!(full.seconds(Step::Idle, &history), Step::Idle.usual_seconds());
        for step in [Step::Core, Step::Idle] {
            history.record(step, 100.0, 5);
            assert_eq!(full.seconds(step, &history), 100.0);
        }
        let once = Estimate { runs: 1, ..full };
        assert_eq!(once.seconds(Step::Core, &history), 20.0);
        assert_eq!(
            once.seconds(Step::Idle, &history),
            100.0,
            "the step `idle` must have one round for any number of runs"
        );
    }

    #[test]
    fn the_line_shows_the_times_for_the_next_step_and_for_the_rest() {
        let mut history = History::default();
        let steps = [Step::Core, Step::Fairness, Step::Idle];
        for (step, seconds) in steps.into_iter().zip([1_000.0, 65.0, 10.0]) {
            history.record(step, seconds, 1);
        }
        let line = Estimate { effort: Effort::Full, runs: 1 }.line(1, &steps, &history);
        assert_eq!(line, "[2 of 3] fair: about 1 min 5 s, and 1 min 15 s until the end");
    }
}
