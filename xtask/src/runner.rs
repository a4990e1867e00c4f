//! Runs stages: all of them side by side, or one by itself.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;

use crate::schedule::Outcome;
use crate::shell::Shell;
use crate::stage::Stage;
use crate::tasks::{self, Row};

/// Runs the stages side by side, with the set-up that they need, and ends with a table.
pub(crate) fn run(shell: &Shell, stages: &[Stage]) -> Result<()> {
    let started = Instant::now();
    let report = tasks::run(shell, &[], stages);
    shell.print(format_args!("\n{}", table(&report.rows, started.elapsed(), busy()?)));
    report.into_result()
}

/// Sees to what a stage needs, and runs it with its output in the terminal.
pub(crate) fn run_only(shell: &Shell, stage: &Stage) -> Result<()> {
    tasks::set_up(shell, stage.needs)?;
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
