//! The history of earlier sessions: the durations of steps, and the pairings that exceeded their time limit.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::step::Step;
use crate::pairing::Pairing;

/// The history of earlier sessions.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct History {
    /// The duration of one round of each step in seconds.
    seconds_per_round: BTreeMap<String, f64>,
    /// The pairings of each step that exceeded the time limit in their latest measurement.
    too_long: BTreeMap<String, Vec<Pairing>>,
}

impl History {
    /// Reads the history. Returns an empty history if the file does not exist.
    pub(super) fn read(path: &Path) -> Result<Self> {
        match std::fs::read_to_string(path) {
            Ok(text) => {
                serde_json::from_str(&text).with_context(|| format!("{} cannot be read", path.display()))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error).with_context(|| format!("{} cannot be read", path.display())),
        }
    }

    pub(super) fn write(&self, path: &Path) -> Result<()> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(path, serde_json::to_string_pretty(self)? + "\n")
            .with_context(|| format!("{} cannot be written", path.display()))
    }

    pub(super) fn seconds_per_round(&self, step: Step) -> Option<f64> {
        self.seconds_per_round.get(step.name()).copied()
    }

    pub(super) fn record(&mut self, step: Step, seconds: f64, runs: u32) {
        self.seconds_per_round.insert(step.name().to_owned(), seconds / f64::from(step.rounds(runs)));
    }

    /// Returns true if the latest measurement of a pairing in any of the steps exceeded the time limit.
    pub(super) fn took_too_long(&self, pairing: Pairing) -> bool {
        self.too_long.values().any(|pairings| pairings.contains(&pairing))
    }

    /// Records whether a pairing exceeded the time limit in a step.
    pub(super) fn record_pairing(&mut self, step: Step, pairing: Pairing, took_too_long: bool) {
        let pairings = self.too_long.entry(step.name().to_owned()).or_default();
        pairings.retain(|known| *known != pairing);
        if took_too_long {
            pairings.push(pairing);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pairing_is_too_slow_until_the_same_step_is_within_its_limit() {
        let mut history = History::default();
        history.record_pairing(Step::Loss1, Pairing::OURS, true);
        history.record_pairing(Step::Loss5, Pairing::OURS, false);
        assert!(history.took_too_long(Pairing::OURS));
        history.record_pairing(Step::Loss1, Pairing::OURS, false);
        assert!(!history.took_too_long(Pairing::OURS));
    }

    #[test]
    fn a_history_is_read_back_from_a_file_and_empty_without_one() {
        let path = std::env::temp_dir().join(format!("rakwire-bench-history-{}.json", std::process::id()));
        assert_eq!(History::read(&path).unwrap(), History::default());
        let mut history = History::default();
        history.record(Step::Core, 10.0, 5);
        history.record_pairing(Step::Loss5, Pairing::OURS, true);
        history.write(&path).unwrap();
        let read = History::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!((read.seconds_per_round(Step::Core), read), (Some(2.0), history));
    }
}
