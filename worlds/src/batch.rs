//! Many worlds on several threads, until the first one that fails.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::Broken;
use crate::plan::Omitted;
use crate::plant::Plant;
use crate::shrink::run;
use crate::world::Outcome;

/// The worlds that have run so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Their number.
    pub worlds: u64,
    /// The sums of their outcomes.
    pub total: Outcome,
    /// The seed from which an interrupted batch continues: all worlds before it have run.
    pub from: u64,
    /// The failing world with the lowest seed, and the guarantee that it broke.
    pub failure: Option<(u64, Broken)>,
}

/// The state that the threads share.
struct State {
    progress: Progress,
    /// The next seed to run.
    next: u64,
    running: BTreeSet<u64>,
}

/// Runs the worlds of these seeds; `report` is called after each. No world begins after one has failed.
///
/// The result does not depend on the number of threads, apart from the sums of a batch with a failure.
pub fn run_all(
    seeds: Range<u64>,
    jobs: NonZeroUsize,
    omitted: &Omitted,
    plant: Option<Plant>,
    report: &(dyn Fn(&Progress) + Sync),
) -> Progress {
    let progress = Progress { from: seeds.start, ..Progress::default() };
    let state = Mutex::new(State { progress, next: seeds.start, running: BTreeSet::new() });
    thread::scope(|scope| {
        for _ in 0..jobs.get() {
            scope.spawn(|| {
                loop {
                    // A guard in the condition of a loop would be held in its body.
                    let next = lock(&state).begin(seeds.end);
                    let Some(seed) = next else { return };
                    let outcome = run(seed, omitted, plant);
                    let progress = lock(&state).end(seed, outcome);
                    report(&progress);
                }
            });
        }
    });
    state.into_inner().unwrap_or_else(PoisonError::into_inner).progress
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    /// Takes the next seed, in ascending order, so that the first failure of all seeds is found.
    fn begin(&mut self, end: u64) -> Option<u64> {
        let seed = self.next;
        if seed >= end || self.progress.failure.is_some() {
            return None;
        }
        self.next += 1;
        self.running.insert(seed);
        Some(seed)
    }

    /// Records how a world ended.
    fn end(&mut self, seed: u64, outcome: Result<Outcome, Broken>) -> Progress {
        self.running.remove(&seed);
        let progress = &mut self.progress;
        progress.worlds += 1;
        progress.from = self.running.first().copied().unwrap_or(self.next);
        match outcome {
            Ok(outcome) => progress.total.add(outcome),
            Err(broken) => {
                let is_first = progress.failure.as_ref().is_none_or(|(first, _)| seed < *first);
                if is_first {
                    progress.failure = Some((seed, broken));
                }
            }
        }
        progress.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_continues_from_the_first_world_that_has_not_ended() {
        let mut state = State { progress: Progress::default(), next: 0, running: BTreeSet::new() };
        assert_eq!([state.begin(9), state.begin(9)], [Some(0), Some(1)]);
        assert_eq!(state.end(1, Ok(Outcome::default())).from, 0);
        assert_eq!(state.end(0, Ok(Outcome::default())).from, 2);
    }
}
