//! Runs stages: several in parallel, with their results in a table and a file per tier, or a single stage.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use serde_json::{Map, Value, json};

use crate::files;
use crate::history;
use crate::schedule::Outcome;
use crate::shell::Shell;
use crate::stage::{Stage, Tier};
use crate::stop;
use crate::tasks::{self, Row};

/// The last results of each stage that `nightly` has run, with the commit and the date. It is committed.
const NIGHTLY: &str = ".ci/nightly.json";

/// The results of a run: its rows and durations.
struct Numbers {
    rows: Vec<Row>,
    total: Duration,
    /// The CPU time of the child processes.
    busy: Duration,
}

/// Runs stages in parallel, with their set-up. Prints a table and the first error of each failed stage, and records the
/// results in the file of the tier.
pub fn run_several(shell: &Shell, tier: Tier, stages: &[Stage], all: &[Stage]) -> Result<()> {
    // The state of the repository may change during a run of hours.
    let state = state(shell)?;
    let numbers = run(shell, stages)?;
    let below_target = format!("target/xtask/last-{}.json", tier.name());
    let path = if tier == Tier::Nightly { NIGHTLY } else { &below_target };
    let before = || serde_json::from_str(&shell.read(path).ok()?).ok();
    let recorded = numbers.recorded(before().unwrap_or_default(), &state, all);
    files::write(&shell.path(path), format!("{recorded:#}\n"))?;
    numbers.result()
}

fn run(shell: &Shell, stages: &[Stage]) -> Result<Numbers> {
    let started = Instant::now();
    let report = tasks::run(shell, &[], stages);
    let numbers = Numbers { rows: report.rows, total: started.elapsed(), busy: busy()? };
    shell.print(format_args!("\n{}{}", numbers.table(), failures(&numbers.rows)));
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

/// Returns the commit, true if there are changes other than the results of an earlier run, and the time.
fn state(shell: &Shell) -> Result<Map<String, Value>> {
    let hash = shell.cmd("git", ["rev-parse", "HEAD"]).probe()?.unwrap_or_default();
    let others = format!(":(exclude){NIGHTLY}");
    let changes =
        shell.cmd("git", ["status", "--porcelain", "--", ".", &others]).probe()?.unwrap_or_default();
    let date = shell.cmd("date", ["--utc", "+%Y-%m-%dT%H:%M:%SZ"]).output()?.stdout;
    let state = json!({"commit": hash.trim(), "dirty": !changes.trim().is_empty(), "date": date.trim()});
    Ok(state.as_object().cloned().unwrap_or_default())
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

impl Numbers {
    fn tests(&self) -> u64 {
        self.rows.iter().filter_map(|row| row.tests).sum()
    }

    /// Returns an error that names all parts that did not pass.
    fn result(&self) -> Result<()> {
        let others = self.rows.iter().filter(|row| row.outcome != Outcome::Passed);
        let names: Vec<_> = others.map(|row| row.name.as_str()).collect();
        if names.is_empty() {
            return Ok(());
        }
        bail!("{} of {} parts failed or did not run: {}", names.len(), self.rows.len(), names.join(", "))
    }

    fn table(&self) -> String {
        let width = self.rows.iter().map(|row| row.name.len()).max().unwrap_or(0).max("in all".len());
        let line = |name: &str, seconds: &str, tests: &str, result: &str| {
            format!("{name:<width$} {seconds:>9} {tests:>7}  {result}")
        };
        let mut lines = vec![line("stage", "seconds", "tests", "result")];
        for row in &self.rows {
            let has_run = row.outcome != Outcome::NotRun;
            let seconds = if has_run { format!("{:.1}", row.took.as_secs_f64()) } else { "-".to_owned() };
            let tests = row.tests.map_or_else(|| "-".to_owned(), |tests| tests.to_string());
            lines.push(line(&row.name, &seconds, &tests, row.word()));
        }
        let (total, busy) = (self.total.as_secs_f64(), self.busy.as_secs_f64());
        let cores = format!("{busy:.1} CPU seconds, {:.1} cores busy", busy / total.max(f64::EPSILON));
        lines.push(line("in all", &format!("{total:.1}"), &self.tests().to_string(), &cores));
        lines.join("\n")
    }

    /// Returns the results of earlier runs by stage, with those of this run and the state of the repository in their place.
    fn recorded(&self, before: Map<String, Value>, state: &Map<String, Value>, all: &[Stage]) -> Value {
        let is_stage = |name: &str| all.iter().any(|stage| stage.name == name);
        let tenths = |time: Duration| (time.as_secs_f64() * 10.0).round() / 10.0;
        let now = self.rows.iter().filter(|row| row.outcome != Outcome::NotRun).map(|row| {
            let (result, seconds) = (row.outcome.word(), tenths(row.took));
            let (tests, reason, flaky) = (row.tests, &row.reason, &row.flaky);
            let mut results = json!({"result": result, "seconds": seconds, "tests": tests, "reason": reason, "flaky": flaky});
            results.as_object_mut().into_iter().for_each(|results| results.extend(state.clone()));
            (row.name.clone(), results)
        });
        before.into_iter().chain(now).filter(|(name, _)| is_stage(name)).collect::<Map<_, _>>().into()
    }
}

/// Returns the first error of each failed part with its log, and the reason why others did not run.
fn failures(rows: &[Row]) -> String {
    let mut lines = Vec::new();
    for Row { name, outcome, reason, flaky, log, .. } in rows {
        let reason = reason.as_deref();
        match (outcome, flaky) {
            (Outcome::Failed, _) => {
                lines.push(format!("\n{name} FAILED: {}\n    log: {log}", reason.unwrap_or_default()))
            }
            (_, Some(flaky)) => {
                lines.push(format!("\n{name} has flaky tests, which passed when repeated: {flaky}"))
            }
            // Parts without a reason did not run because the run ended early, which the table shows.
            (Outcome::NotRun, None) => {
                lines.extend(reason.map(|reason| format!("\n{name} not run: {reason}")))
            }
            _ => {}
        }
    }
    if lines.is_empty() { String::new() } else { format!("\n{}", lines.concat()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_stages_are_named_at_the_end_of_a_run() {
        let stages = [
            Stage::new("good", "passes", &[], |_| Ok(())),
            Stage::new("bad", "fails", &[], |_| bail!("broken")),
        ];
        let shell = Shell::new().unwrap();
        run_only(&shell, &stages[0]).unwrap();
        assert_eq!(
            format!("{:#}", run_only(&shell, &stages[1]).unwrap_err()),
            "the stage \"bad\" failed: broken"
        );
        let error = run(&shell, &stages).unwrap().result().unwrap_err();
        assert_eq!(error.to_string(), "1 of 2 parts failed or did not run: bad");
    }

    fn numbers() -> Numbers {
        let row = |name: &str, millis, outcome, tests, reason: Option<&str>| Row {
            name: name.to_owned(),
            took: Duration::from_millis(millis),
            outcome,
            tests,
            reason: reason.map(str::to_owned),
            flaky: None,
            log: format!("target/xtask/{name}.log"),
        };
        let mut rows = vec![
            row("set-up one", 1250, Outcome::Passed, None, None),
            row("two", 2000, Outcome::Failed, Some(13), Some("error: no")),
            row("three", 500, Outcome::Stopped, None, None),
            row("four", 0, Outcome::NotRun, None, Some("needs one, which failed")),
        ];
        rows[0].flaky = Some("a::b: assertion failed".to_owned());
        Numbers { rows, total: Duration::from_millis(3250), busy: Duration::from_millis(4875) }
    }

    #[test]
    fn the_table_has_a_row_for_each_stage_and_each_failure_its_reason() {
        let expected = "\
stage        seconds   tests  result
set-up one       1.2       -  flaky
two              2.0      13  FAILED
three            0.5       -  ended early
four               -       -  not run
in all           3.2      13  4.9 CPU seconds, 1.5 cores busy";
        assert_eq!(numbers().table(), expected);
        let expected = "

set-up one has flaky tests, which passed when repeated: a::b: assertion failed
two FAILED: error: no
    log: target/xtask/two.log
four not run: needs one, which failed";
        assert_eq!(failures(&numbers().rows), expected);
        assert_eq!(failures(&[]), "");
    }

    #[test]
    fn a_run_replaces_only_the_recorded_results_of_its_stages() {
        let mut numbers = numbers();
        "wasm".clone_into(&mut numbers.rows[1].name);
        "docs".clone_into(&mut numbers.rows[3].name);
        let all = ["docs", "wasm"].map(|name| Stage::new(name, "passes", &[], |_| Ok(())));
        let state = |commit: &str| Map::from_iter([("commit".to_owned(), json!(commit))]);
        let before =
            json!({"docs": {"commit": "a"}, "wasm": {"commit": "a"}, "a removed stage": {"commit": "a"}});
        let recorded = numbers.recorded(before.as_object().unwrap().clone(), &state("b"), &all);
        let names: Vec<_> = recorded.as_object().unwrap().keys().collect();
        assert_eq!(names, ["docs", "wasm"]);
        assert_eq!((&recorded["docs"]["commit"], &recorded["wasm"]["commit"]), (&json!("a"), &json!("b")));
        assert_eq!(
            (&recorded["wasm"]["result"], &recorded["wasm"]["seconds"]),
            (&json!("FAILED"), &json!(2.0))
        );
    }
}
