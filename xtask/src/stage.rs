//! Stages: named parts of a test run, each timed, the first failure ending it.

use std::time::{Duration, Instant};

use anyhow::{Context, Error, Result};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;

use crate::schedule::{Constraints, Load, Outcome, Resource};
use crate::setup::{self, Need};
use crate::shell::Shell;
use crate::tasks::{self, Row};

/// A named part of a test run.
#[derive(Clone)]
pub(crate) struct Stage {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) needs: &'static [Need],
    load: Load,
    resource: Option<Resource>,
    run: fn(&Shell) -> Result<()>,
}

impl Stage {
    /// A stage that keeps a core busy.
    pub(crate) const fn new(
        name: &'static str,
        about: &'static str,
        needs: &'static [Need],
        run: fn(&Shell) -> Result<()>,
    ) -> Self {
        Self { name, about, needs, load: Load::Full, resource: None, run }
    }

    /// The same, which takes so much of the machine.
    pub(crate) const fn load(mut self, load: Load) -> Self {
        self.load = load;
        self
    }

    /// The same, which needs this for itself.
    pub(crate) const fn uses(mut self, resource: Resource) -> Self {
        self.resource = Some(resource);
        self
    }

    pub(crate) fn constraints(&self, after: Vec<usize>) -> Constraints {
        Constraints { load: self.load, resource: self.resource, after }
    }

    pub(crate) fn run(&self, shell: &Shell) -> Result<()> {
        (self.run)(shell)
    }

    /// A failure of the stage, with its name.
    pub(crate) fn explain(&self, error: Error) -> Error {
        error.context(format!("the stage {:?} failed", self.name))
    }
}

pub(crate) fn list(stages: &[Stage]) {
    for stage in stages {
        println!("{:<12} {}", stage.name, stage.about);
    }
}

pub(crate) fn find<'s>(stages: &'s [Stage], name: &str) -> Result<&'s Stage> {
    let names: Vec<_> = stages.iter().map(|stage| stage.name).collect();
    let found = stages.iter().find(|stage| stage.name == name);
    found.with_context(|| format!("there is no stage {name:?}; there are {}", names.join(", ")))
}

/// Runs the stages side by side, with the set-up that they need, and ends with a table.
pub(crate) fn run(shell: &Shell, stages: &[Stage]) -> Result<()> {
    let started = Instant::now();
    let report = tasks::run(shell, &[], stages);
    shell.print(format_args!("\n{}", table(&report.rows, started.elapsed(), busy()?)));
    report.into_result()
}

/// Sees to what a stage needs, and runs it with its output in the terminal.
pub(crate) fn run_only(shell: &Shell, stage: &Stage) -> Result<()> {
    setup::run(shell, stage.needs)?;
    let started = Instant::now();
    stage.run(shell).map_err(|error| stage.explain(error))?;
    shell.print(format_args!("{}: passed in {:.1} s", stage.name, started.elapsed().as_secs_f64()));
    Ok(())
}

/// How long cores have been busy with the children of this process.
fn busy() -> Result<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).context("the system does not tell the time used")?;
    let duration = |time: TimeVal| {
        let whole = Duration::from_secs(time.tv_sec().unsigned_abs());
        whole + Duration::from_micros(time.tv_usec().unsigned_abs())
    };
    Ok(duration(usage.user_time()) + duration(usage.system_time()))
}

fn table(rows: &[Row], total: Duration, busy: Duration) -> String {
    let width = rows.iter().map(|row| row.name.len()).max().unwrap_or(0).max("in all".len());
    let mut text = format!("{:<width$} {:>9}  result\n", "stage", "seconds");
    for row in rows {
        let seconds = match row.outcome {
            Outcome::NotRun => "-".to_owned(),
            Outcome::Passed | Outcome::Failed | Outcome::Stopped => format!("{:.1}", row.took.as_secs_f64()),
        };
        text += &format!("{:<width$} {seconds:>9}  {}\n", row.name, row.outcome.word());
    }
    let cores = busy.as_secs_f64() / total.as_secs_f64().max(f64::EPSILON);
    text + &format!("{:<width$} {:>9.1}  {cores:.1} cores busy", "in all", total.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAGES: [Stage; 2] = [
        Stage::new("good", "passes", &[], |_| Ok(())),
        Stage::new("bad", "fails", &[], |_| anyhow::bail!("broken")),
    ];

    #[test]
    fn a_stage_by_itself_fails_with_its_name() {
        let shell = Shell::new().unwrap();
        run_only(&shell, &STAGES[0]).unwrap();
        let error = run_only(&shell, &STAGES[1]).unwrap_err();
        assert_eq!(format!("{error:#}"), "the stage \"bad\" failed: broken");
    }

    #[test]
    fn a_stage_is_found_by_its_name() {
        assert_eq!(find(&STAGES, "bad").unwrap().about, "fails");
        let error = find(&STAGES, "worse").map(|_| ()).unwrap_err();
        assert_eq!(error.to_string(), "there is no stage \"worse\"; there are good, bad");
    }

    #[test]
    fn the_table_tells_each_stage() {
        let row = |name: &str, millis, outcome| Row {
            name: name.to_owned(),
            took: Duration::from_millis(millis),
            outcome,
        };
        let rows = [
            row("set-up one", 1250, Outcome::Passed),
            row("two", 2000, Outcome::Failed),
            row("three", 500, Outcome::Stopped),
            row("four", 0, Outcome::NotRun),
        ];
        let expected = "\
stage        seconds  result
set-up one       1.2  passed
two              2.0  FAILED
three            0.5  ended early
four               -  not run
in all           3.2  1.5 cores busy";
        assert_eq!(table(&rows, Duration::from_millis(3250), Duration::from_millis(4875)), expected);
    }
}
