//! Runs many scripts with every pairing, several in parallel.

use std::collections::BTreeMap;
use std::io;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::compare::{Comparison, Rule, compare};
use crate::pairing::Pairing;
use crate::programs::Programs;
use crate::run::run;
use crate::script::Script;
use crate::table::Row;

/// The maximum number of additional reference runs. The original is multi-threaded and sometimes differs from itself; a
/// comparison without differences against any of these runs is sufficient.
const REPETITIONS: u64 = 3;

/// The options of a suite.
#[derive(Clone, Debug)]
pub struct Options {
    /// The seed of the networks.
    pub seed: u64,
    /// The number of scripts that run simultaneously.
    pub at_once: usize,
}

/// The result of a script with one pairing.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The name of the script.
    pub script: String,
    /// The libraries of the peers.
    pub pairing: Pairing,
    /// The differences that neither a rule nor a row of the table permits.
    pub differences: Vec<String>,
    /// The rules that were applied, with the number of streams of each.
    pub applied: BTreeMap<Rule, usize>,
    /// The line numbers of the rows that were applied.
    pub rows: Vec<usize>,
}

/// Runs the scripts, several in parallel. Calls `report` with each outcome as soon as it is known.
pub fn run_all(
    scripts: &[Script],
    programs: &Programs,
    table: &[Row],
    options: &Options,
    report: impl Fn(&Outcome) + Sync,
) -> io::Result<Vec<Outcome>> {
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        let workers = (0..options.at_once.max(1)).map(|_| {
            scope.spawn(|| {
                while let Some(script) = scripts.get(next.fetch_add(1, Ordering::Relaxed)) {
                    for outcome in run_one(script, programs, table, options.seed)? {
                        report(&outcome);
                        outcomes.lock().unwrap_or_else(PoisonError::into_inner).push(outcome);
                    }
                }
                Ok::<(), io::Error>(())
            })
        });
        let workers: Vec<_> = workers.collect();
        let failed = |_| Err(io::Error::other("a worker has panicked"));
        workers.into_iter().try_for_each(|worker| worker.join().unwrap_or_else(failed))
    })
    .map(|()| outcomes.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Runs one script with all pairings, and compares them.
pub fn run_one(script: &Script, programs: &Programs, table: &[Row], seed: u64) -> io::Result<Vec<Outcome>> {
    let mut references = vec![run(script, Pairing::REFERENCE, programs, seed)?];
    let mut outcomes = Vec::new();
    for pairing in Pairing::COMPARED {
        let other = run(script, pairing, programs, seed)?;
        let mut outcome = judge(script, pairing, table, compare(script, &references[0], &other));
        for repetition in 1..=REPETITIONS {
            if outcome.differences.is_empty() {
                break;
            }
            let at = usize::try_from(repetition).unwrap_or(usize::MAX);
            if references.len() <= at {
                references.push(run(script, Pairing::REFERENCE, programs, seed + repetition)?);
            }
            let again = judge(script, pairing, table, compare(script, &references[at], &other));
            if again.differences.is_empty() {
                outcome = again;
                outcome.applied.insert(Rule::OriginalVaries, 1);
            }
        }
        outcomes.push(outcome);
    }
    Ok(outcomes)
}

/// Removes the differences that the table permits.
fn judge(script: &Script, pairing: Pairing, table: &[Row], comparison: Comparison) -> Outcome {
    let mut outcome = Outcome {
        script: script.name.clone(),
        pairing,
        differences: Vec::new(),
        applied: comparison.applied,
        rows: Vec::new(),
    };
    for difference in comparison.differences {
        match table.iter().find(|row| row.permits(&difference, script, pairing)) {
            Some(row) => outcome.rows.push(row.line),
            None => outcome.differences.push(difference.to_string()),
        }
    }
    outcome
}

/// Returns the rows of the table that no outcome used.
#[must_use]
pub fn unused_rows<'a>(table: &'a [Row], outcomes: &[Outcome]) -> Vec<&'a Row> {
    let is_used = |row: &&Row| outcomes.iter().any(|outcome| outcome.rows.contains(&row.line));
    table.iter().filter(|row| !is_used(row)).collect()
}
