//! Measures a workload with all pairings, each with a time limit.

use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

use super::history::History;
use super::step::Step;
use crate::core_only::Effort;
use crate::pairing::{Bench, Pairing, Run, Workload, are_enough, median};
use crate::process::TookTooLong;

/// The time limit of a pairing that exceeded its time limit in the last session or in an earlier step of this one.
const SHORT_LIMIT: Duration = Duration::from_secs(10);

/// A pairing with its runs, or the error of the first failed run.
pub(super) type Found = (Pairing, Result<Vec<Run>>);

pub(super) struct Runner {
    pub(super) bench: Bench,
    pub(super) effort: Effort,
    pub(super) history: History,
}

impl Runner {
    /// Returns the number of messages to send, where `full` is the number in a full session.
    pub(super) fn count(&self, full: u32) -> u32 {
        if self.effort == Effort::Quick { (full / 50).max(1) } else { full }
    }

    /// Returns the pairings that this session measures.
    fn chosen(&self, pairings: impl IntoIterator<Item = Pairing>) -> Vec<Pairing> {
        let quick = |pairing: &Pairing| [pairing.client, pairing.server].iter().all(|peer| peer.is_quick());
        let chosen = |pairing: &Pairing| self.effort == Effort::Full || quick(pairing);
        pairings.into_iter().filter(chosen).collect()
    }

    /// Returns the settings with the time limit of a pairing.
    fn bench_of(&self, pairing: Pairing) -> Bench {
        let again = self.history.took_too_long(pairing);
        self.bench.with_limit(if again { SHORT_LIMIT.min(self.bench.limit) } else { self.bench.limit })
    }

    /// Measures a workload in rounds. Each round runs `baseline` once and then every pairing once.
    pub(super) fn rounds(
        &mut self,
        step: Step,
        pairings: impl IntoIterator<Item = Pairing>,
        workload: &Workload,
        mut baseline: impl FnMut(&Self) -> Result<()>,
    ) -> Result<Vec<Found>> {
        let chosen = self.chosen(pairings).into_iter();
        let mut all: Vec<(Found, Duration)> =
            chosen.map(|pairing| ((pairing, Ok(Vec::new())), Duration::ZERO)).collect();
        for round in 0..step.rounds(self.bench.runs) {
            baseline(self)?;
            for ((pairing, found), taken) in &mut all {
                let Ok(runs) = found else { continue };
                if are_enough(runs) {
                    continue;
                }
                let began = Instant::now();
                match self.bench_of(*pairing).run(*pairing, workload, round.into()) {
                    Ok(run) => runs.push(run),
                    Err(error) => *found = Err(error),
                }
                *taken += began.elapsed();
            }
        }
        Ok(all.into_iter().map(|(found, taken)| self.recorded(step, found, taken)).collect())
    }

    /// Measures all runs of one pairing after another, and runs `baseline` before each pairing.
    pub(super) fn one_by_one(
        &mut self,
        step: Step,
        pairings: impl IntoIterator<Item = Pairing>,
        workload: &Workload,
        mut baseline: impl FnMut(&Self) -> Result<()>,
    ) -> Result<Vec<Found>> {
        let mut all = Vec::new();
        for pairing in self.chosen(pairings) {
            baseline(self)?;
            let began = Instant::now();
            let runs = self.bench_of(pairing).runs(pairing, workload);
            all.push(self.recorded(step, (pairing, runs), began.elapsed()));
        }
        Ok(all)
    }

    /// Prints the result and the duration of a pairing, and records whether it exceeded the time limit.
    fn recorded(&mut self, step: Step, (pairing, runs): Found, taken: Duration) -> Found {
        let again = self.history.took_too_long(pairing);
        let too_long = runs.as_ref().is_err_and(|error| error.is::<TookTooLong>());
        self.history.record_pairing(step, pairing, too_long);
        let runs = runs.map_err(|error| if again && too_long { anyhow!("{error} again") } else { error });
        let (name, taken) = (step.name(), taken.as_secs_f64());
        match &runs {
            Ok(runs) => {
                let seconds = median(runs.iter().map(|run| run.seconds)).unwrap_or(0.0);
                eprintln!("{name}: {pairing}: {seconds:.4} s ({} runs in {taken:.1} s)", runs.len());
            }
            Err(error) => eprintln!("{name}: {pairing}: {error:#} (in {taken:.1} s)"),
        }
        (pairing, runs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pairing::Peer;
    use crate::process::Cores;

    fn runner() -> Runner {
        let cores = Cores { sender: 0, receiver: 0 };
        let bench = Bench { peers: "".into(), cores, runs: 1, limit: Duration::from_secs(45) };
        Runner { bench, effort: Effort::Full, history: History::default() }
    }

    #[test]
    fn a_pairing_that_took_too_long_gets_a_shorter_time_limit() {
        let mut runner = runner();
        let slow = Pairing { client: Peer::TokioRaknet, server: Peer::TokioRaknet };
        let limit = |runner: &Runner, pairing| runner.bench_of(pairing).limit;
        assert_eq!(limit(&runner, slow), Duration::from_secs(45));
        let error = |runner: &mut Runner| {
            let (_, runs) = runner.recorded(Step::Loss1, (slow, Err(TookTooLong.into())), SHORT_LIMIT);
            runs.unwrap_err().to_string()
        };
        assert_eq!(error(&mut runner), "took too long");
        assert_eq!(limit(&runner, slow), SHORT_LIMIT);
        assert_eq!(limit(&runner, Pairing::OURS), Duration::from_secs(45));
        assert_eq!(error(&mut runner), "took too long again");
        assert!(runner.recorded(Step::Loss1, (slow, Ok(Vec::new())), SHORT_LIMIT).1.is_ok());
        assert_eq!(limit(&runner, slow), Duration::from_secs(45));
    }

    #[test]
    fn a_quick_session_measures_4_of_16_pairings() {
        let quick = Runner { effort: Effort::Quick, ..runner() };
        assert_eq!((runner().chosen(Pairing::all()).len(), quick.chosen(Pairing::all()).len()), (16, 4));
    }
}
