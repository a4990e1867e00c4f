//! Runs set-up steps and stages as jobs, each with its own log, and collects their results.

use std::fs;
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Error, Result, anyhow};

use crate::history;
use crate::log::Log;
use crate::results::{self, Tests};
use crate::schedule::{self, Constraints, Ended, Event, Job, Outcome, Resource};
use crate::setup::{self, Done, Need};
use crate::shell::Shell;
use crate::stage::Stage;
use crate::stop::Stop;

const LOGS: &str = "target/xtask";
/// Shorter set-up steps get no row in the table.
const NOTABLE: Duration = Duration::from_secs(1);

/// The work of a task.
#[derive(Clone, Copy)]
enum Work<'s> {
    Need(Need),
    Stage(&'s Stage),
}

/// A task and its result.
struct Task<'s> {
    work: Work<'s>,
    /// The result of a set-up step.
    done: OnceLock<Done>,
}

/// The result of a task, for the table.
#[derive(Debug)]
pub struct Row {
    /// The name of the stage or the set-up step.
    pub name: String,
    /// Duration.
    pub took: Duration,
    /// The outcome.
    pub outcome: Outcome,
    /// The tests counted in its log.
    pub tests: Option<Tests>,
    /// The first error of a failed task, or the reason why it did not run.
    pub reason: Option<String>,
    /// The tests that passed only when repeated, with the first error.
    pub flaky: Option<String>,
    /// The file with its output, in the repository.
    pub log: String,
}

impl Row {
    /// Returns the outcome for a table.
    pub fn word(&self) -> &'static str {
        if self.flaky.is_some() { "flaky" } else { self.outcome.word() }
    }
}

/// The result of a run.
pub struct Report {
    /// The stages and the notable set-up steps, in the order in which they could start.
    pub rows: Vec<Row>,
    /// The first failure in the order of the rows.
    pub failure: Option<Error>,
}

impl Report {
    /// Returns the failure, if there is one.
    pub fn into_result(self) -> Result<()> {
        self.failure.map_or(Ok(()), Err)
    }
}

/// Ensures that all needs are met. Ends with the first failure.
pub fn set_up(shell: &Shell, needs: &[Need]) -> Result<()> {
    run(shell, needs, &[]).into_result()
}

/// Runs stages after their needs and these ones. The output of each is stored in a file below target/, and shown in one
/// piece when it ends.
pub fn run(shell: &Shell, needs: &[Need], stages: &[Stage]) -> Report {
    let tasks = tasks(needs, stages);
    let stop = Stop::default();
    let jobs = tasks.iter().map(|task| {
        let after = task.requires().into_iter().filter_map(|need| {
            let is_it = |other: &Task<'_>| matches!(other.work, Work::Need(other) if other == need);
            tasks.iter().position(is_it)
        });
        Job::new(task.work.constraints(after.collect()), || task.run(shell, &stop))
    });
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let show = |job: usize, event: Event<'_>| {
        let Some(task) = tasks.get(job) else { return };
        match event {
            // Needs are usually met already, so their start is not reported.
            Event::Starts if matches!(task.work, Work::Stage(_)) => task.announce(shell),
            Event::IsSlow if matches!(task.work, Work::Need(_)) => task.announce(shell),
            Event::Starts | Event::IsSlow => {}
            Event::Ends(ended) => {
                let cause = ended.barred_by.and_then(|cause| tasks.get(cause));
                task.show(shell, ended, cause);
                // After a failure the rest of a set-up is pointless.
                if ended.outcome == Outcome::Failed && stages.is_empty() {
                    stop.set();
                }
            }
        }
    };
    let ended = schedule::run(jobs.collect(), cores, &stop, show);
    // If this run did not use the folder of the tools, another one may be using it.
    if tasks.iter().any(|task| task.work.constraints(vec![]).resource == Some(Resource::Tools)) {
        setup::clean(shell);
    }
    report(shell, &tasks, ended)
}

/// Programs that compile within a minute, in the same folder as the tests of all crates, and that other jobs wait for.
const SHORT: [Need; 2] = [Need::WasmBindgen, Need::Tools];

/// Returns each stage after its needs, and each need once. Short programs precede the tests of all crates, so that jobs
/// that wait for them run in parallel with the long build.
fn tasks<'s>(needs: &[Need], stages: &'s [Stage]) -> Vec<Task<'s>> {
    let all: Vec<_> = needs.iter().copied().chain(stages.iter().flat_map(Stage::needs)).collect();
    let all = Need::with_required(&all);
    let short: Vec<_> = SHORT.into_iter().filter(|need| all.contains(need)).collect();
    let mut work: Vec<Work<'_>> = Vec::new();
    add(&mut work, needs, &short);
    for stage in stages {
        add(&mut work, &stage.needs(), &short);
        work.push(Work::Stage(stage));
    }
    work.into_iter().map(|work| Task { work, done: OnceLock::new() }).collect()
}

/// Adds the missing ones of these needs.
fn add(work: &mut Vec<Work<'_>>, needs: &[Need], short: &[Need]) {
    for need in Need::with_required(needs) {
        let before = if need == Need::HostTests { Need::with_required(short) } else { Vec::new() };
        for need in before.into_iter().chain([need]) {
            if !work.iter().any(|other| matches!(other, Work::Need(other) if *other == need)) {
                work.push(Work::Need(need));
            }
        }
    }
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
    fn requires(&self) -> Vec<Need> {
        match self.work {
            Work::Need(need) => need.requires().to_vec(),
            Work::Stage(stage) => stage.needs(),
        }
    }

    /// Returns the path of its log in the repository.
    fn log(&self) -> String {
        format!("{LOGS}/{}.log", self.work.name().replace(' ', "-"))
    }

    fn text(&self, shell: &Shell) -> String {
        let text = fs::read(shell.path(&self.log())).unwrap_or_default();
        String::from_utf8_lossy(&text).into_owned()
    }

    fn run(&self, shell: &Shell, stop: &Stop) -> Result<()> {
        let log = Log::create(&shell.path(&self.log()))?;
        let shell = shell.for_part(log.clone(), stop);
        let started = Instant::now();
        let result = match self.work {
            Work::Need(need) => setup::install(need, &shell).map(Some),
            Work::Stage(stage) => {
                let result = stage.run(&shell).or_else(|error| self.run_again(stage, &shell, error));
                result.map(|()| None)
            }
        };
        match result {
            Ok(done) => {
                // A set-up step that had nothing to do has no meaningful duration.
                if !matches!(done, Some(Done::Present(_))) {
                    history::keep(&shell, &self.work.name(), started.elapsed());
                }
                // It is set once, here.
                let _ = done.map(|done| self.done.set(done));
                Ok(())
            }
            Err(error) => {
                log.note(format_args!("Error: {error:#}"));
                Err(error)
            }
        }
    }

    /// Repeats the failed tests of a stage, if that is meaningful.
    fn run_again(&self, stage: &Stage, shell: &Shell, error: Error) -> Result<()> {
        let failed = || results::failed_tests(&self.text(shell));
        let Some((runner, failed)) = stage.rerun.zip(stage.rerun.and_then(|_| failed())) else {
            return Err(error);
        };
        runner.run_again(shell, &failed).map_err(|_| error)
    }

    fn announce(&self, shell: &Shell) {
        let name = self.work.name();
        let what = match self.work {
            Work::Need(need) => setup::doing(need),
            Work::Stage(stage) => stage.about,
        };
        let expected = history::expected(shell, &name).map_or_else(String::new, |time| format!("{time}; "));
        shell.note(format_args!("--> {name}: {what} ({expected}log: {})", self.log()));
    }

    /// Shows the result: one line for a successful set-up step, and the output of a stage or of a failure. `cause` is
    /// the task that failed before it.
    fn show(&self, shell: &Shell, ended: &Ended, cause: Option<&Self>) {
        let (name, seconds) = (self.work.name(), ended.took.as_secs_f64());
        match (ended.outcome, self.done.get()) {
            (Outcome::Passed, Some(Done::Present(what))) => shell.note(format_args!("{name}: {what}")),
            (Outcome::Passed, Some(Done::Installed(what))) => {
                shell.note(format_args!("{name}: {what} ({seconds:.1} s)"));
            }
            (Outcome::Passed | Outcome::Failed, _) => {
                let (text, word) = (self.text(shell), ended.outcome.word());
                shell.print(format_args!("\n==> {name}\n{text}<== {name}: {word} in {seconds:.1} s\n"));
            }
            (Outcome::Stopped | Outcome::NotRun, _) => {
                let because = cause.map_or_else(String::new, |cause| format!(": {}", cause.as_reason()));
                shell.note(format_args!("{name}: {}{because}", ended.outcome.word()));
            }
        }
    }

    /// Returns the reason why other tasks cannot run after this one has failed.
    fn as_reason(&self) -> String {
        match self.work {
            Work::Need(need) => format!("needs {}, which failed", need.name()),
            Work::Stage(stage) => format!("needs {}, which failed", stage.name),
        }
    }
}

fn report(shell: &Shell, tasks: &[Task<'_>], ended: Vec<Ended>) -> Report {
    let mut report = Report { rows: Vec::new(), failure: None };
    let is_complete = ended.iter().all(|ended| ended.outcome == Outcome::Passed);
    for (task, Ended { outcome, error, barred_by, took }) in tasks.iter().zip(ended) {
        let is_stage = matches!(task.work, Work::Stage(_));
        if is_stage || took >= NOTABLE || outcome == Outcome::Failed {
            let has_log = matches!(outcome, Outcome::Passed | Outcome::Failed);
            let text = if has_log { task.text(shell) } else { String::new() };
            let barred = barred_by.and_then(|cause| tasks.get(cause)).map(Task::as_reason);
            let failed = error
                .as_ref()
                .map(|error| results::first_error(&text).unwrap_or_else(|| format!("{error:#}")));
            let flaky = results::flaky_tests(&text);
            let flaky = (!flaky.is_empty() && outcome == Outcome::Passed).then(|| {
                format!("{}: {}", flaky.join(", "), results::first_error(&text).unwrap_or_default())
            });
            report.rows.push(Row {
                name: task.work.name(),
                took,
                outcome,
                tests: if is_stage { results::tests(&text) } else { None },
                reason: failed.or(barred),
                flaky,
                log: task.log(),
            });
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
    use crate::schedule::Load;

    fn names(tasks: &[Task<'_>]) -> Vec<String> {
        tasks.iter().map(|task| task.work.name()).collect()
    }

    #[test]
    fn needs_precede_the_first_stage_that_has_them() {
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
    fn short_programs_precede_the_tests_if_a_later_stage_needs_them() {
        let stages = [
            Stage::new("long", "", &[Need::Nginx, Need::HostTests], |_| Ok(())),
            Stage::new("package", "", &[Need::GamePackage], |_| Ok(())),
            Stage::in_tools("texts", "", &[]),
        ];
        let expected = [
            "set-up nginx",
            "set-up wasm-bindgen",
            "set-up tools of xtask",
            "set-up host tests",
            "long",
            "set-up rust target for browsers",
            "set-up game package",
            "package",
            "texts",
        ];
        assert_eq!(names(&tasks(&[], &stages)), expected);
        assert_eq!(names(&tasks(&[], &stages[..1])), ["set-up nginx", "set-up host tests", "long"]);
    }

    #[test]
    fn a_failed_stage_is_reported_and_the_others_run() {
        let stages = [
            Stage::new("good-task", "passes", &[], |shell| {
                shell.print("fine");
                Ok(())
            }),
            Stage::new("bad-task", "fails", &[], |shell| {
                shell.print("error: no such thing\ntest result: FAILED. 2 passed; 1 failed; 0 ignored");
                anyhow::bail!("broken")
            })
            .load(Load::Alone),
            Stage::new("last-task", "is reached", &[], |_| anyhow::bail!("broken, too")).load(Load::Alone),
        ];
        let shell = Shell::new().unwrap();
        let report = run(&shell, &[], &stages);
        let rows: Vec<_> = report
            .rows
            .iter()
            .map(|row| (row.name.as_str(), row.outcome, row.reason.as_deref(), row.tests.map(Tests::all)))
            .collect();
        let expected = [
            ("good-task", Outcome::Passed, None, None),
            ("bad-task", Outcome::Failed, Some("error: no such thing"), Some(3)),
            ("last-task", Outcome::Failed, Some("Error: broken, too"), None),
        ];
        assert_eq!(rows, expected);
        let error = format!("{:#}", report.into_result().unwrap_err());
        assert_eq!(error, "the stage \"bad-task\" failed: broken");
        assert_eq!(fs::read_to_string(shell.path("target/xtask/good-task.log")).unwrap(), "fine\n");
        assert!(history::seconds(&shell, "good-task").is_some());
    }

    #[test]
    fn tasks_with_failed_needs_do_not_run_and_give_the_reason() {
        // No set-up step fails on purpose, so the failure is simulated.
        let never = Stage::new("never-task", "is not reached", &[Need::Page], |_| panic!("reached"));
        let stages = [never];
        let tasks = tasks(&[], &stages);
        let place = |name: &str| tasks.iter().position(|task| task.work.name() == name).unwrap();
        let ended = tasks.iter().map(|task| match task.work.name().as_str() {
            "set-up wasm-bindgen" => Ended::failed(anyhow!("no network")),
            "set-up page" | "never-task" => Ended::barred_by(place("set-up wasm-bindgen")),
            _ => Ended::passed(),
        });
        let report = report(&Shell::new().unwrap(), &tasks, ended.collect());
        let row = report.rows.iter().find(|row| row.name == "never-task").unwrap();
        assert_eq!(row.outcome, Outcome::NotRun);
        assert_eq!(row.reason.as_deref(), Some("needs wasm-bindgen, which failed"));
        assert_eq!(format!("{:#}", report.into_result().unwrap_err()), "no network");
    }
}
