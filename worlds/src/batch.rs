//! A batch of worlds on several threads, which stops after the first failure.

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

/// The results of the worlds of a batch that have run so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The number of worlds that have run.
    pub worlds: u64,
    /// The sum of the outcomes of the worlds that kept their guarantees.
    pub total: Outcome,
    /// The seed from which an interrupted batch continues: all worlds before it have run.
    pub from: u64,
    /// The lowest seed of a world that failed, and the guarantee that it violated.
    pub failure: Option<(u64, Broken)>,
}

/// The state that the threads of a batch share: the next seed, the running worlds and the progress.
#[derive(Debug)]
pub struct Batch {
    progress: Progress,
    /// The next seed to run.
    next: u64,
    end: u64,
    running: BTreeSet<u64>,
}

/// Runs the worlds of these seeds and calls `report` after each. After a failure no further world begins.
///
/// The result does not depend on the number of threads, apart from the sums of a batch with a failure.
pub fn run_all(
    seeds: Range<u64>,
    jobs: NonZeroUsize,
    omitted: &Omitted,
    plant: Option<Plant>,
    report: &(dyn Fn(&Progress) + Sync),
) -> Progress {
    let state = Mutex::new(Batch::new(seeds));
    thread::scope(|scope| {
        for _ in 0..jobs.get() {
            scope.spawn(|| {
                loop {
                    // In a `while let` condition, the guard would be held during the body.
                    let next = lock(&state).begin();
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

fn lock(state: &Mutex<Batch>) -> MutexGuard<'_, Batch> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Batch {
    /// Creates a batch of the worlds with these seeds.
    #[must_use]
    pub fn new(seeds: Range<u64>) -> Self {
        let progress = Progress { from: seeds.start, ..Progress::default() };
        Self { progress, next: seeds.start, end: seeds.end, running: BTreeSet::new() }
    }

    /// Takes the next seed, in ascending order, so that the reported failure is that of the lowest seed.
    pub fn begin(&mut self) -> Option<u64> {
        let seed = self.next;
        if seed >= self.end || self.progress.failure.is_some() {
            return None;
        }
        self.next += 1;
        self.running.insert(seed);
        Some(seed)
    }

    /// Records the outcome of a world; returns the progress of the batch.
    pub fn end(&mut self, seed: u64, outcome: Result<Outcome, Broken>) -> Progress {
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
