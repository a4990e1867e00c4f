//! Stages: named parts of a run, each timed, the first failure ending it.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::setup::{self, Need};
use crate::shell::Shell;

/// A named part of a test run.
#[derive(Clone)]
pub(crate) struct Stage {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) needs: &'static [Need],
    pub(crate) run: fn(&mut Shell) -> Result<()>,
}

impl Stage {
    pub(crate) const fn new(
        name: &'static str,
        about: &'static str,
        needs: &'static [Need],
        run: fn(&mut Shell) -> Result<()>,
    ) -> Self {
        Self { name, about, needs, run }
    }
}

/// How a stage went.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Passed,
    Failed,
    NotRun,
}

struct Row {
    name: &'static str,
    took: Duration,
    outcome: Outcome,
}

pub(crate) fn list(stages: &[Stage]) {
    for stage in stages {
        println!("{:<12} {}", stage.name, stage.about);
    }
}

pub(crate) fn find(stages: &[Stage], name: &str) -> Result<Stage> {
    let names: Vec<_> = stages.iter().map(|stage| stage.name).collect();
    let found = stages.iter().find(|stage| stage.name == name).cloned();
    found.with_context(|| format!("there is no stage {name:?}; there are {}", names.join(", ")))
}

/// Sets up what the stages need, runs them in their order, and ends with a table.
pub(crate) fn run(shell: &mut Shell, stages: &[Stage]) -> Result<()> {
    let started = Instant::now();
    let needs: Vec<Need> = stages.iter().flat_map(|stage| stage.needs).copied().collect();
    let prepared = timed("set-up", || setup::run(shell, &needs));
    let mut failure = prepared.1.err();
    let mut rows = vec![prepared.0];
    for stage in stages {
        if failure.is_some() {
            rows.push(Row { name: stage.name, took: Duration::ZERO, outcome: Outcome::NotRun });
            continue;
        }
        println!("\n==> {}: {}", stage.name, stage.about);
        let (row, result) = timed(stage.name, || (stage.run)(shell));
        rows.push(row);
        failure = result.err().map(|error| error.context(format!("the stage {:?} failed", stage.name)));
    }
    print!("\n{}", table(&rows, started.elapsed()));
    failure.map_or(Ok(()), Err)
}

fn timed(name: &'static str, action: impl FnOnce() -> Result<()>) -> (Row, Result<()>) {
    let started = Instant::now();
    let result = action();
    let outcome = if result.is_ok() { Outcome::Passed } else { Outcome::Failed };
    let row = Row { name, took: started.elapsed(), outcome };
    println!("<== {name}: {} in {:.1} s", outcome.word(), row.took.as_secs_f64());
    (row, result)
}

impl Outcome {
    fn word(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "FAILED",
            Self::NotRun => "not run",
        }
    }
}

fn table(rows: &[Row], total: Duration) -> String {
    let mut text = format!("{:<12} {:>9}  result\n", "stage", "seconds");
    for row in rows {
        let seconds = match row.outcome {
            Outcome::Passed | Outcome::Failed => format!("{:.1}", row.took.as_secs_f64()),
            Outcome::NotRun => "-".to_owned(),
        };
        text += &format!("{:<12} {seconds:>9}  {}\n", row.name, row.outcome.word());
    }
    let count = |outcome| rows.iter().filter(|row| row.outcome == outcome).count();
    text += &format!("{:<12} {:>9.1}\n", "in all", total.as_secs_f64());
    text += &format!("stages: {} passed, {} failed", count(Outcome::Passed), count(Outcome::Failed));
    match count(Outcome::NotRun) {
        0 => text + "\n",
        not_run => text + &format!(", {not_run} skipped\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAGES: [Stage; 3] = [
        Stage { name: "good", about: "passes", needs: &[], run: |_| Ok(()) },
        Stage { name: "bad", about: "fails", needs: &[], run: |_| anyhow::bail!("broken") },
        Stage { name: "never", about: "is not reached", needs: &[], run: |_| panic!("reached") },
    ];

    #[test]
    fn the_first_failure_ends_the_run_and_is_named() {
        let mut shell = Shell::new().unwrap();
        let error = run(&mut shell, &STAGES).unwrap_err();
        assert_eq!(format!("{error:#}"), "the stage \"bad\" failed: broken");
        run(&mut shell, &STAGES[..1]).unwrap();
    }

    #[test]
    fn a_stage_is_found_by_its_name() {
        assert_eq!(find(&STAGES, "bad").unwrap().about, "fails");
        let error = find(&STAGES, "worse").map(|_| ()).unwrap_err();
        assert_eq!(error.to_string(), "there is no stage \"worse\"; there are good, bad, never");
    }

    #[test]
    fn the_table_tells_each_stage() {
        let rows = [
            Row { name: "one", took: Duration::from_millis(1250), outcome: Outcome::Passed },
            Row { name: "two", took: Duration::from_secs(2), outcome: Outcome::Failed },
            Row { name: "three", took: Duration::ZERO, outcome: Outcome::NotRun },
        ];
        let expected = "\
stage          seconds  result
one                1.2  passed
two                2.0  FAILED
three                -  not run
in all             3.2
stages: 1 passed, 1 failed, 1 skipped
";
        assert_eq!(table(&rows, Duration::from_millis(3250)), expected);
    }
}
