//! What a command has to do before and beside others: set-up and stages as jobs with a log each, and how they went.

use std::fs;
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use anyhow::{Error, Result, anyhow};

use crate::log::Log;
use crate::schedule::{self, Constraints, Ended, Event, Job, Load, Outcome, Resource};
use crate::setup::{self, Done, Need};
use crate::shell::Shell;
use crate::stage::Stage;
use crate::stop::Stop;

const LOGS: &str = "target/xtask";
/// Set-up that took less is not worth a line of the table.
const NOTABLE: Duration = Duration::from_secs(1);

/// Something to do.
#[derive(Clone, Copy)]
enum Work<'s> {
    Need(Need),
    Stage(&'s Stage),
}

/// Something to do, and what is known once it is done.
struct Task<'s> {
    work: Work<'s>,
    /// What a step of the set-up found or did.
    done: OnceLock<Done>,
}

/// How a task went, for the table.
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) took: Duration,
    pub(crate) outcome: Outcome,
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

/// Sees to it that all this is there.
pub(crate) fn set_up(shell: &Shell, needs: &[Need]) -> Result<()> {
    run(shell, needs, &[]).into_result()
}

/// Runs stages and sees to what they need, and to these needs. What each prints is shown in one piece when it ends, and
/// stands in a file below target/ meanwhile.
pub(crate) fn run(shell: &Shell, needs: &[Need], stages: &[Stage]) -> Report {
    let tasks = tasks(needs, stages);
    let stop = Stop::default();
    let jobs = tasks.iter().map(|task| {
        let after = task.requires().iter().filter_map(|need| {
            let is_it = |other: &Task<'_>| matches!(other.work, Work::Need(other) if other == *need);
            tasks.iter().position(is_it)
        });
        Job::new(task.work.constraints(after.collect()), || task.run(shell, &stop))
    });
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let show = |event: Event<'_>| match (tasks.get(event.job), event.ended) {
        (Some(task), None) => task.announce(shell),
        (Some(task), Some(ended)) => task.show(shell, ended),
        (None, _) => {}
    };
    let ended = schedule::run(jobs.collect(), cores, &stop, show);
    // Others may be at work in the folder of the tools where this run was not.
    if tasks.iter().any(|task| task.work.constraints(vec![]).resource == Some(Resource::Tools)) {
        setup::clean(shell);
    }
    report(&tasks, ended)
}

/// Each stage behind what it needs, and each need once.
fn tasks<'s>(needs: &[Need], stages: &'s [Stage]) -> Vec<Task<'s>> {
    let mut work: Vec<Work<'_>> = Need::with_required(needs).into_iter().map(Work::Need).collect();
    for stage in stages {
        for need in Need::with_required(stage.needs) {
            if !work.iter().any(|other| matches!(other, Work::Need(other) if *other == need)) {
                work.push(Work::Need(need));
            }
        }
        work.push(Work::Stage(stage));
    }
    work.into_iter().map(|work| Task { work, done: OnceLock::new() }).collect()
}

impl Work<'_> {
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

    fn constraints(&self, after: Vec<usize>) -> Constraints {
        match self {
            Self::Need(need) => need.constraints(after),
            Self::Stage(stage) => stage.constraints(after),
        }
    }
}

impl Task<'_> {
    fn requires(&self) -> &'static [Need] {
        match self.work {
            Work::Need(need) => need.requires(),
            Work::Stage(stage) => stage.needs,
        }
    }

    /// Where its output goes, in the repository.
    fn log(&self) -> String {
        format!("{LOGS}/{}.log", self.work.name().replace(' ', "-"))
    }

    fn run(&self, shell: &Shell, stop: &Stop) -> Result<()> {
        let shell = shell.for_part(Log::create(&shell.path(&self.log()))?, stop);
        match self.work {
            Work::Need(need) => {
                let done = setup::install(need, &shell)?;
                // Nobody else sets it.
                let _ = self.done.set(done);
                Ok(())
            }
            Work::Stage(stage) => stage.run(&shell),
        }
    }

    fn announce(&self, shell: &Shell) {
        let is_short = matches!(self.work, Work::Need(need) if need.constraints(vec![]).load == Load::None);
        if !is_short {
            shell.note(format_args!("--> {} (log: {})", self.work.name(), self.log()));
        }
    }

    /// Shows how it went: of set-up that succeeded a line, and all that a stage printed, or what failed.
    fn show(&self, shell: &Shell, ended: &Ended) {
        let (name, seconds) = (self.work.name(), ended.took.as_secs_f64());
        match (ended.outcome, self.done.get()) {
            (Outcome::Passed, Some(Done::Present(what))) => shell.note(format_args!("{name}: {what}")),
            (Outcome::Passed, Some(Done::Installed(what))) => {
                shell.note(format_args!("{name}: {what} ({seconds:.1} s)"));
            }
            (Outcome::Passed | Outcome::Failed, _) => {
                let text = fs::read(shell.path(&self.log())).unwrap_or_default();
                let text = String::from_utf8_lossy(&text);
                let word = ended.outcome.word();
                shell.print(format_args!("\n==> {name}\n{text}<== {name}: {word} in {seconds:.1} s\n"));
            }
            (Outcome::Stopped | Outcome::NotRun, _) => {
                shell.note(format_args!("{name}: {}", ended.outcome.word()));
            }
        }
    }
}

fn report(tasks: &[Task<'_>], ended: Vec<Ended>) -> Report {
    let mut report = Report { rows: Vec::new(), failure: None };
    let is_complete = ended.iter().all(|ended| ended.outcome == Outcome::Passed);
    for (task, Ended { outcome, error, took }) in tasks.iter().zip(ended) {
        let is_stage = matches!(task.work, Work::Stage(_));
        if is_stage || took >= NOTABLE || outcome == Outcome::Failed {
            report.rows.push(Row { name: task.work.name(), took, outcome });
        }
        let error = error.map(|error| task.work.explain(error));
        report.failure = report.failure.or(error);
    }
    if !is_complete {
        report.failure.get_or_insert_with(|| anyhow!("interrupted"));
    }
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(tasks: &[Task<'_>]) -> Vec<String> {
        tasks.iter().map(|task| task.work.name()).collect()
    }

    #[test]
    fn needs_stand_once_before_the_first_stage_that_has_them() {
        let stages = [
            Stage::new("one", "", &[Need::Packages], |_| Ok(())),
            Stage::new("two", "", &[Need::Node, Need::Qemu], |_| Ok(())),
        ];
        let expected = ["set-up node", "set-up npm packages", "one", "set-up qemu", "two"];
        assert_eq!(names(&tasks(&[], &stages)), expected);
        let expected = ["set-up qemu", "set-up node", "set-up npm packages", "one"];
        assert_eq!(names(&tasks(&[Need::Qemu, Need::Node], &stages[..1])), expected);
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
        let rows: Vec<_> = report.rows.iter().map(|row| (row.name.as_str(), row.outcome)).collect();
        let expected =
            [("good-task", Outcome::Passed), ("bad-task", Outcome::Failed), ("never-task", Outcome::NotRun)];
        assert_eq!(rows, expected);
        let error = format!("{:#}", report.into_result().unwrap_err());
        assert_eq!(error, "the stage \"bad-task\" failed: broken");
        assert_eq!(fs::read_to_string(shell.path("target/xtask/good-task.log")).unwrap(), "fine\n");
    }
}
