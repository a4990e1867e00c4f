//! The results of a run, stored in one file per tier.

use std::time::Duration;

use anyhow::{Result, bail};
use serde_json::{Value, json};

use crate::files;
use crate::results::Tests;
use crate::schedule::Outcome;
use crate::shell::Shell;
use crate::stage::Tier;
use crate::tasks::Row;

/// The results of the last complete run, which are committed.
const NIGHTLY: &str = ".ci/nightly.json";

/// The state of the repository, which may change during a run of hours.
pub struct Commit {
    hash: String,
    /// True if there are changes other than the results of an earlier run.
    is_dirty: bool,
}

impl Commit {
    /// Returns the current state.
    pub fn now(shell: &Shell) -> Result<Self> {
        let hash = shell.cmd("git", ["rev-parse", "HEAD"]).probe()?.unwrap_or_default();
        let others = format!(":(exclude){NIGHTLY}");
        let changes = shell.cmd("git", ["status", "--porcelain", "--", ".", &others]).probe()?;
        let is_dirty = !changes.unwrap_or_default().trim().is_empty();
        Ok(Self { hash: hash.trim().to_owned(), is_dirty })
    }
}

/// The rows and times of a run.
pub struct Numbers {
    /// The stages and the notable set-up steps.
    pub rows: Vec<Row>,
    /// Duration of the run.
    pub total: Duration,
    /// CPU time used.
    pub busy: Duration,
}

impl Numbers {
    /// Returns the total number of tests.
    pub fn tests(&self) -> u64 {
        self.rows.iter().filter_map(|row| row.tests).map(Tests::all).sum()
    }

    /// Returns an error that names all parts that did not pass.
    pub fn result(&self) -> Result<()> {
        let others: Vec<_> = self.rows.iter().filter(|row| row.outcome != Outcome::Passed).collect();
        if others.is_empty() {
            return Ok(());
        }
        let names: Vec<_> = others.iter().map(|row| row.name.as_str()).collect();
        bail!("{} of {} parts failed or did not run: {}", others.len(), self.rows.len(), names.join(", "))
    }

    /// Writes the results below target/, and those of a complete run to their committed file. `commit` is the state at
    /// the beginning of the run.
    pub fn keep(&self, shell: &Shell, tier: Tier, commit: &Commit) -> Result<()> {
        write(shell, &format!("target/xtask/last-{}.json", tier.name()), &self.json())?;
        if tier == Tier::Nightly {
            let date = shell.cmd("date", ["--utc", "+%Y-%m-%dT%H:%M:%SZ"]).output()?.stdout;
            write(shell, NIGHTLY, &self.dated(commit, date.trim()))?;
        }
        Ok(())
    }

    fn dated(&self, commit: &Commit, date: &str) -> Value {
        let mut dated = json!({"commit": commit.hash, "dirty": commit.is_dirty, "date": date});
        if let (Some(dated), Value::Object(numbers)) = (dated.as_object_mut(), self.json()) {
            dated.extend(numbers);
        }
        dated
    }

    fn json(&self) -> Value {
        let stage = |row: &Row| {
            json!({
                "name": row.name,
                "seconds": tenths(row.took),
                "tests": row.tests.map(Tests::all),
                "result": row.outcome.word(),
                "reason": row.reason,
                "flaky": row.flaky,
            })
        };
        let outcome = if self.result().is_ok() { Outcome::Passed } else { Outcome::Failed };
        json!({
            "result": outcome.word(),
            "seconds": tenths(self.total),
            "cpu_seconds": tenths(self.busy),
            "tests": self.tests(),
            "stages": self.rows.iter().map(stage).collect::<Vec<_>>(),
        })
    }
}

fn write(shell: &Shell, path: &str, value: &Value) -> Result<()> {
    files::write(&shell.path(path), format!("{value:#}\n"))
}

fn tenths(time: Duration) -> f64 {
    (time.as_secs_f64() * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_results_contain_each_stage_and_the_sums() {
        let row = |name: &str, tests: Option<Tests>, outcome| Row {
            name: name.to_owned(),
            took: Duration::from_millis(1240),
            outcome,
            tests,
            reason: None,
            flaky: None,
            log: String::new(),
        };
        let some = |passed| Some(Tests { passed, failed: 0 });
        let rows = vec![
            row("one", some(2), Outcome::Passed),
            row("two", some(3), Outcome::Passed),
            row("three", None, Outcome::Failed),
        ];
        let numbers = Numbers { rows, total: Duration::from_secs(9), busy: Duration::from_secs(12) };
        let json = numbers.json();
        assert_eq!(json["tests"], 5);
        assert_eq!((&json["seconds"], &json["cpu_seconds"]), (&json!(9.0), &json!(12.0)));
        let first = json!({"name": "one", "seconds": 1.2, "tests": 2, "result": "passed", "reason": null, "flaky": null});
        assert_eq!(json["stages"][0], first);
        assert_eq!((&json["stages"][2]["result"], &json["result"]), (&json!("FAILED"), &json!("FAILED")));
        let commit = Commit { hash: "abc".to_owned(), is_dirty: true };
        let dated = numbers.dated(&commit, "1970-01-01T00:00:00Z");
        assert_eq!((&dated["commit"], &dated["dirty"]), (&json!("abc"), &json!(true)));
        assert_eq!(dated["date"], "1970-01-01T00:00:00Z");
        assert!(json.as_object().unwrap().iter().all(|(name, value)| dated[name] == *value));
        assert_eq!(numbers.result().unwrap_err().to_string(), "1 of 3 parts failed or did not run: three");
    }
}
