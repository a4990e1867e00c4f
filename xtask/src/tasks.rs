//! What a command has to do before and beside others: set-up and stages as jobs with a log each, and how they went.

use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use anyhow::{Error, Result, anyhow};

use crate::log::Log;
use crate::process::Stop;
use crate::schedule::{self, Ended, Event, Job, Lane, Outcome, Terms};
use crate::setup::{self, Done, Need};
use crate::shell::Shell;
use crate::stage::Stage;

const LOGS: &str = "target/xtask";
/// Set-up that took less is not worth a line of the table.
const NOTABLE: Duration = Duration::from_secs(1);

/// Something to do.
#[derive(Clone, Copy)]
enum What<'s> {
    Need(Need),
    Stage(&'s Stage),
}

/// Something to do, and what is known once it is done.
struct Task<'s> {
    what: What<'s>,
    log: PathBuf,
    /// What a step of the set-up found or did.
    done: OnceLock<Done>,
}

/// How a task went, for the table.
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) took: Duration,
    pub(crate) result: RowResult,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowResult {
    Passed,
    Failed,
    Stopped,
    NotRun,
}

/// How a run went.
pub(crate) struct Report {
    /// The stages and the notable steps of the set-up, in the order in which they could start.
    pub(crate) rows: Vec<Row>,
    pub(crate) failure: Option<Error>,
}

impl Report {
    pub(crate) fn into_result(self) -> Result<()> {
        self.failure.map_or(Ok(()), Err)
    }
}

/// Runs stages and sees to what they need, and to these needs. What each prints is shown in one piece when it ends, and
/// stands in a file below target/ meanwhile.
pub(crate) fn run(shell: &Shell, needs: &[Need], stages: &[Stage]) -> Report {
    let tasks = tasks(shell, needs, stages);
    let stop = Stop::default();
    let jobs = tasks.iter().map(|task| {
        let after = task.requires().iter().filter_map(|need| {
            let is_it = |other: &Task<'_>| matches!(other.what, What::Need(other) if other == *need);
            tasks.iter().position(is_it)
        });
        Job::new(task.what.terms(after.collect()), || task.run(shell, &stop))
    });
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let show = |event: Event<'_>| match (tasks.get(event.job), event.ended) {
        (Some(task), None) => task.announce(shell),
        (Some(task), Some(ended)) => task.show(shell, ended),
        (None, _) => {}
    };
    let ended = schedule::run(jobs.collect(), cores, &stop, show);
    // Others may be at work in the folder of the tools where this run was not.
    if tasks.iter().any(|task| task.what.terms(vec![]).lane == Some(Lane::Tools)) {
        setup::clean(shell);
    }
    report(&tasks, ended)
}

/// Each stage behind what it needs, and each need once.
fn tasks<'s>(shell: &Shell, needs: &[Need], stages: &'s [Stage]) -> Vec<Task<'s>> {
    let mut whats: Vec<What<'_>> = setup::missing(shell, needs).into_iter().map(What::Need).collect();
    for stage in stages {
        for need in setup::missing(shell, stage.needs) {
            if !whats.iter().any(|what| matches!(what, What::Need(other) if *other == need)) {
                whats.push(What::Need(need));
            }
        }
        whats.push(What::Stage(stage));
    }
    let task = |what: What<'s>| {
        let log = shell.path(LOGS).join(format!("{}.log", what.name().replace(' ', "-")));
        Task { what, log, done: OnceLock::new() }
    };
    whats.into_iter().map(task).collect()
}

impl What<'_> {
    fn name(&self) -> String {
        match self {
            Self::Need(need) => format!("set-up {}", need.name()),
            Self::Stage(stage) => stage.name.to_owned(),
        }
    }

    fn explain(&self, error: Error) -> Error {
        match self {
            Self::Need(_) => error,
            Self::Stage(stage) => stage.explain(error),
        }
    }

    fn terms(&self, after: Vec<usize>) -> Terms {
        match self {
            Self::Need(need) => need.terms(after),
            Self::Stage(stage) => stage.terms(after),
        }
    }
}

impl Task<'_> {
    fn requires(&self) -> &'static [Need] {
        match self.what {
            What::Need(need) => need.requires(),
            What::Stage(stage) => stage.needs,
        }
    }

    fn run(&self, shell: &Shell, stop: &Stop) -> Result<()> {
        let shell = shell.for_part(Log::create(&self.log)?, stop);
        match self.what {
            What::Need(need) => {
                let done = need.install(&shell)?;
                // Nobody else sets it.
                let _ = self.done.set(done);
                shell.set_ready(need);
                Ok(())
            }
            What::Stage(stage) => stage.run(&shell),
        }
    }

    fn announce(&self, shell: &Shell) {
        if let What::Stage(stage) = self.what {
            shell.note(format_args!("--> {}: {}", stage.name, stage.about));
        }
    }

    /// Shows how it went: of set-up that succeeded a line, of all else everything.
    fn show(&self, shell: &Shell, ended: &Ended) {
        let seconds = ended.took.as_secs_f64();
        match (self.what, self.done.get()) {
            (What::Need(need), Some(Done::Present(what))) => {
                shell.note(format_args!("set-up: {}: {what}", need.name()));
            }
            (What::Need(need), Some(Done::Installed(what))) => {
                shell.note(format_args!("set-up: {}: {what} ({seconds:.1} s)", need.name()));
            }
            (what, _) => {
                let text = fs::read(&self.log).unwrap_or_default();
                let (name, text) = (what.name(), String::from_utf8_lossy(&text));
                let result = RowResult::from(&ended.outcome).word();
                shell.print(format_args!("\n==> {name}\n{text}<== {name}: {result} in {seconds:.1} s\n"));
            }
        }
    }
}

fn report(tasks: &[Task<'_>], ended: Vec<Ended>) -> Report {
    let mut report = Report { rows: Vec::new(), failure: None };
    let mut is_complete = true;
    for (task, ended) in tasks.iter().zip(ended) {
        let result = RowResult::from(&ended.outcome);
        let is_notable = matches!(task.what, What::Stage(_)) || ended.took >= NOTABLE;
        if is_notable || result == RowResult::Failed {
            report.rows.push(Row { name: task.what.name(), took: ended.took, result });
        }
        if let Outcome::Failed(error) = ended.outcome {
            report.failure.get_or_insert_with(|| task.what.explain(error));
        }
        is_complete &= result == RowResult::Passed;
    }
    if !is_complete {
        report.failure.get_or_insert_with(|| anyhow!("interrupted"));
    }
    report
}

impl RowResult {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "FAILED",
            Self::Stopped => "ended early",
            Self::NotRun => "not run",
        }
    }
}

impl From<&Outcome> for RowResult {
    fn from(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Passed => Self::Passed,
            Outcome::Failed(_) => Self::Failed,
            Outcome::Stopped => Self::Stopped,
            Outcome::NotRun => Self::NotRun,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::Load;

    fn names(tasks: &[Task<'_>]) -> Vec<String> {
        tasks.iter().map(|task| task.what.name()).collect()
    }

    #[test]
    fn needs_stand_once_before_the_first_stage_that_has_them() {
        let stages = [
            Stage::new("one", "", &[Need::Packages], |_| Ok(())),
            Stage::new("two", "", &[Need::Node, Need::Qemu], |_| Ok(())),
        ];
        let shell = Shell::new().unwrap();
        let expected = ["set-up node", "set-up npm packages", "one", "set-up qemu", "two"];
        assert_eq!(names(&tasks(&shell, &[], &stages)), expected);
        shell.set_ready(Need::Packages);
        assert_eq!(names(&tasks(&shell, &[Need::Packages], &stages[..1])), ["one"]);
    }

    #[test]
    fn the_failure_is_that_of_the_stage_that_failed_and_nothing_else_runs() {
        let stages = [
            Stage::new("good-task", "passes", &[], |shell| {
                shell.print("fine");
                Ok(())
            }),
            Stage::new("bad-task", "fails", &[], |_| anyhow::bail!("broken")).load(Load::Alone),
            Stage::new("never-task", "is not reached", &[], |_| panic!("reached")).load(Load::Alone),
        ];
        let shell = Shell::new().unwrap();
        let report = run(&shell, &[], &stages);
        let rows: Vec<_> = report.rows.iter().map(|row| (row.name.as_str(), row.result)).collect();
        let expected = [
            ("good-task", RowResult::Passed),
            ("bad-task", RowResult::Failed),
            ("never-task", RowResult::NotRun),
        ];
        assert_eq!(rows, expected);
        let error = format!("{:#}", report.into_result().unwrap_err());
        assert_eq!(error, "the stage \"bad-task\" failed: broken");
        assert_eq!(fs::read_to_string(shell.path(LOGS).join("good-task.log")).unwrap(), "fine\n");
    }
}
