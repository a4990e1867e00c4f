//! Runs stages: several in parallel, or a single one.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;

use crate::history;
use crate::numbers::{Commit, Numbers};
use crate::schedule::Outcome;
use crate::shell::Shell;
use crate::stage::{Stage, Tier};
use crate::stop;
use crate::tasks::{self, Row};

/// Runs the stages of a tier in parallel, with their set-up. Prints a table and the first error of each failed stage,
/// and stores the results.
pub fn run_tier(shell: &Shell, tier: Tier, stages: &[Stage]) -> Result<()> {
    let commit = Commit::now(shell)?;
    let numbers = run(shell, stages)?;
    let kept = numbers.keep(shell, tier, &commit);
    numbers.result().and(kept)
}

/// Runs some stages in parallel, with their set-up.
pub fn run_several(shell: &Shell, stages: &[Stage]) -> Result<()> {
    run(shell, stages)?.result()
}

fn run(shell: &Shell, stages: &[Stage]) -> Result<Numbers> {
    let started = Instant::now();
    let report = tasks::run(shell, &[], stages);
    let numbers = Numbers { rows: report.rows, total: started.elapsed(), busy: busy()? };
    shell.print(format_args!("\n{}{}", table(&numbers), failures(&numbers.rows)));
    if stop::interrupted() {
        bail!("interrupted");
    }
    Ok(numbers)
}

/// Sets up and runs a single stage with its output in the terminal.
pub fn run_only(shell: &Shell, stage: &Stage) -> Result<()> {
    tasks::set_up(shell, &stage.needs())?;
    let started = Instant::now();
    stage.run(shell).map_err(|error| stage.explain(error))?;
    history::keep(shell, stage.name, started.elapsed());
    shell.print(format_args!("{}: passed in {:.1} s", stage.name, started.elapsed().as_secs_f64()));
    Ok(())
}

/// Returns the CPU time used by the children of this process.
pub(crate) fn busy() -> Result<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).context("the system did not report the CPU time")?;
    let duration = |time: TimeVal| {
        let whole = Duration::from_secs(time.tv_sec().unsigned_abs());
        whole + Duration::from_micros(time.tv_usec().unsigned_abs())
    };
    Ok(duration(usage.user_time()) + duration(usage.system_time()))
}

fn table(numbers: &Numbers) -> String {
    let rows = &numbers.rows;
    let width = rows.iter().map(|row| row.name.len()).max().unwrap_or(0).max("in all".len());
    let mut text = format!("{:<width$} {:>9} {:>7}  result\n", "stage", "seconds", "tests");
    for row in rows {
        let seconds = match row.outcome {
            Outcome::NotRun => "-".to_owned(),
            Outcome::Passed | Outcome::Failed | Outcome::Stopped => format!("{:.1}", row.took.as_secs_f64()),
        };
        let tests = row.tests.map_or_else(|| "-".to_owned(), |tests| tests.all().to_string());
        text += &format!("{:<width$} {seconds:>9} {tests:>7}  {}\n", row.name, row.word());
    }
    let (total, busy) = (numbers.total.as_secs_f64(), numbers.busy.as_secs_f64());
    let cores = busy / total.max(f64::EPSILON);
    let tests = numbers.tests();
    text + &format!(
        "{:<width$} {total:>9.1} {tests:>7}  {busy:.1} CPU seconds, {cores:.1} cores busy",
        "in all"
    )
}

/// Returns the first error of each failed part with its log, and the reason why others did not run.
fn failures(rows: &[Row]) -> String {
    let mut text = String::new();
    for row in rows.iter().filter(|row| row.outcome == Outcome::Failed) {
        let reason = row.reason.as_deref().unwrap_or_default();
        text += &format!("\n{} FAILED: {reason}\n    log: {}", row.name, row.log);
    }
    for row in rows {
        let Some(flaky) = &row.flaky else { continue };
        text += &format!("\n{} has flaky tests, which passed when repeated: {flaky}", row.name);
    }
    // Parts without a reason did not run because the run ended early, which the table shows.
    for row in rows.iter().filter(|row| row.outcome == Outcome::NotRun) {
        let Some(reason) = &row.reason else { continue };
        text += &format!("\n{} not run: {reason}", row.name);
    }
    if text.is_empty() { text } else { format!("\n{text}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Tests;

    const STAGES: [Stage; 2] = [
        Stage::new("good", "passes", &[], |_| Ok(())),
        Stage::new("bad", "fails", &[], |_| anyhow::bail!("broken")),
    ];

    #[test]
    fn a_single_failed_stage_is_named_in_the_error() {
        let shell = Shell::new().unwrap();
        run_only(&shell, &STAGES[0]).unwrap();
        let error = run_only(&shell, &STAGES[1]).unwrap_err();
        assert_eq!(format!("{error:#}"), "the stage \"bad\" failed: broken");
    }

    #[test]
    fn failed_stages_are_named_at_the_end_of_a_run() {
        let shell = Shell::new().unwrap();
        run_several(&shell, &STAGES[..1]).unwrap();
        let error = run_several(&shell, &STAGES).unwrap_err();
        assert_eq!(error.to_string(), "1 of 2 parts failed or did not run: bad");
    }

    fn rows() -> Vec<Row> {
        let row = |name: &str, millis, outcome, tests, reason: Option<&str>| Row {
            name: name.to_owned(),
            took: Duration::from_millis(millis),
            outcome,
            tests,
            reason: reason.map(str::to_owned),
            flaky: None,
            log: format!("target/xtask/{name}.log"),
        };
        let tests = Some(Tests { passed: 12, failed: 1 });
        vec![
            row("set-up one", 1250, Outcome::Passed, None, None),
            row("two", 2000, Outcome::Failed, tests, Some("error: no")),
            row("three", 500, Outcome::Stopped, None, None),
            row("four", 0, Outcome::NotRun, None, Some("needs one, which failed")),
        ]
    }

    #[test]
    fn the_table_has_a_row_for_each_stage() {
        let total = Duration::from_millis(3250);
        let numbers = Numbers { rows: rows(), total, busy: Duration::from_millis(4875) };
        let expected = "\
stage        seconds   tests  result
set-up one       1.2       -  passed
two              2.0      13  FAILED
three            0.5       -  ended early
four               -       -  not run
in all           3.2      13  4.9 CPU seconds, 1.5 cores busy";
        assert_eq!(table(&numbers), expected);
    }

    #[test]
    fn every_failure_is_shown_with_its_first_error_and_log() {
        let expected = "

two FAILED: error: no
    log: target/xtask/two.log
four not run: needs one, which failed";
        assert_eq!(failures(&rows()), expected);
        assert_eq!(failures(&rows()[..1]), "");
        let flaky = rows().swap_remove(0);
        let flaky = Row { flaky: Some("a::b: assertion failed".to_owned()), ..flaky };
        let expected = "\n\nset-up one has flaky tests, which passed when repeated: a::b: assertion failed";
        assert_eq!(flaky.word(), "flaky");
        assert_eq!(failures(&[flaky]), expected);
        let not_reached = rows().pop().map(|row| Row { reason: None, ..row });
        assert_eq!(failures(&Vec::from_iter(not_reached)), "");
    }
}
