//! Runs set-up steps and stages as jobs, each with its own log, and collects their results.

use std::fs;
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Error, Result, anyhow};

use crate::history;
use crate::log::Log;
use crate::results;
use crate::schedule::{self, Constraints, Ended, Event, Outcome, Resource};
use crate::setup::{self, Done, Need};
use crate::shell::Shell;
use crate::stage::Stage;
use crate::stop::Stop;

const LOGS: &str = "target/xtask";
/// The duration below which a set-up step gets no row in the table.
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
    /// The duration of the task.
    pub took: Duration,
    /// The outcome.
    pub outcome: Outcome,
    /// The number of tests in its log.
    pub tests: Option<u64>,
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

/// Ensures that all needs are met. Stops at the first failure.
pub fn set_up(shell: &Shell, needs: &[Need]) -> Result<()> {
    run(shell, needs, &[]).into_result()
}

/// Sets up `needs` and the needs of the stages, and runs the stages. The output of each task is stored in a file below
/// target/, and shown in one piece when the task ends.
pub fn run(shell: &Shell, needs: &[Need], stages: &[Stage]) -> Report {
    let tasks = tasks(needs, stages);
    let stop = Stop::default();
    let jobs = tasks.iter().map(|task| {
        let after = task.requires().into_iter().filter_map(|need| {
            let is_it = |other: &Task<'_>| matches!(other.work, Work::Need(other) if other == need);
            tasks.iter().position(is_it)
        });
        task.work.constraints(after.collect())
    });
    let jobs: Vec<_> = jobs.collect();
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let show = |job: usize, event: Event<'_>| {
        let Some(task) = tasks.get(job) else { return };
        match event {
            // The start of a set-up step is not reported, because needs are usually met already.
            Event::Starts if matches!(task.work, Work::Stage(_)) => task.announce(shell),
            Event::IsSlow if matches!(task.work, Work::Need(_)) => task.announce(shell),
            Event::Starts | Event::IsSlow => {}
            Event::Ends(ended) => {
                let cause = ended.barred_by.and_then(|cause| tasks.get(cause));
                task.show(shell, ended, cause);
                // A set-up without stages ends at its first failure.
                if ended.outcome == Outcome::Failed && stages.is_empty() {
                    stop.set();
                }
            }
        }
    };
    let run = |job: usize| tasks.get(job).map_or(Ok(()), |task| task.run(shell, &stop));
    let ended = schedule::run(&jobs, cores, &stop, run, show);
    // Cleans the folder of the tools only if this run used it, because another run may be using it.
    if jobs.iter().any(|job| job.resource == Some(Resource::Tools)) {
        setup::clean(shell);
    }
    report(shell, &tasks, ended)
}

/// Programs for which other jobs wait. They compile within a minute, in the build folder of the tests of all crates.
const SHORT: [Need; 2] = [Need::WasmBindgen, Need::Tools];

/// Returns each stage after its needs, and each need once. Short programs precede the tests of all crates, so that the
/// jobs that wait for these programs run in parallel with the long build.
fn tasks<'s>(needs: &[Need], stages: &'s [Stage]) -> Vec<Task<'s>> {
    let all: Vec<_> = needs.iter().copied().chain(stages.iter().flat_map(Stage::needs)).collect();
    let all = Need::with_required(&all);
    let mut work: Vec<Work<'_>> = Vec::new();
    let add = |work: &mut Vec<Work<'s>>, needs: &[Need]| {
        for need in Need::with_required(needs) {
            let short = SHORT.into_iter().filter(|short| need == Need::HostTests && all.contains(short));
            for need in Need::with_required(&short.collect::<Vec<_>>()).into_iter().chain([need]) {
                if !work.iter().any(|other| matches!(other, Work::Need(other) if *other == need)) {
                    work.push(Work::Need(need));
                }
            }
        }
    };
    add(&mut work, needs);
    for stage in stages {
        add(&mut work, &stage.needs());
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
                // Cannot fail, because the result is set only here.
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
        let failed = stage.rerun.and_then(|runner| Some((runner, results::failed_tests(&self.text(shell))?)));
        match failed {
            Some((runner, failed)) => runner.run_again(shell, &failed).map_err(|_| error),
            None => Err(error),
        }
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

    /// Prints the result: one line for a successful set-up step, or the output of a stage or a failed step. `cause` is
    /// the failed task because of which this task did not run.
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
        let name = self.work.name();
        format!("needs {}, which failed", name.strip_prefix("set-up ").unwrap_or(&name))
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
                tests: results::tests(&text).filter(|_| is_stage).map(|(passed, failed)| passed + failed),
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

    fn names(tasks: &[Task<'_>]) -> Vec<String> {
        tasks.iter().map(|task| task.work.name()).collect()
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
            }),
        ];
        let shell = Shell::new().unwrap();
        let report = run(&shell, &[], &stages);
        let rows = report.rows.iter().map(|row| (row.outcome, row.reason.as_deref(), row.tests));
        let bad = (Outcome::Failed, Some("error: no such thing"), Some(3));
        assert_eq!(rows.collect::<Vec<_>>(), [(Outcome::Passed, None, None), bad]);
        let error = format!("{:#}", report.into_result().unwrap_err());
        assert_eq!(error, "the stage \"bad-task\" failed: broken");
        assert_eq!(fs::read_to_string(shell.path("target/xtask/good-task.log")).unwrap(), "fine\n");
        assert!(history::seconds(&shell, "good-task").is_some());
    }

    #[test]
    fn tasks_with_failed_needs_do_not_run_and_give_the_reason() {
        // The failure is simulated, because no set-up step can be made to fail.
        let stages = [Stage::new("never-task", "is not reached", &[Need::Node], |_| panic!("reached"))];
        let ended = |outcome, error, barred_by| Ended { outcome, error, barred_by, took: Duration::ZERO };
        let failed = ended(Outcome::Failed, Some(anyhow!("no network")), None);
        let ended = vec![failed, ended(Outcome::NotRun, None, Some(0))];
        let report = report(&Shell::new().unwrap(), &tasks(&[], &stages), ended);
        assert_eq!(report.rows[1].reason.as_deref(), Some("needs node, which failed"));
        assert_eq!(format!("{:#}", report.into_result().unwrap_err()), "no network");
    }
}
