//! Runs jobs in parallel: each after its dependencies, and as many at once as the cores can carry.

mod constraints;
mod plan;

use std::panic::{self, AssertUnwindSafe};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Error, Result, anyhow};

pub use self::constraints::{Constraints, Load, Resource};
use self::plan::{Plan, State};
use crate::stop::Stop;

type Action<'a> = Box<dyn FnOnce() -> Result<()> + Send + 'a>;

/// A part of a run.
pub struct Job<'a> {
    constraints: Constraints,
    action: Action<'a>,
}

impl<'a> Job<'a> {
    /// Creates a job that runs as soon as these constraints are met.
    pub fn new(constraints: Constraints, action: impl FnOnce() -> Result<()> + Send + 'a) -> Self {
        Self { constraints, action: Box::new(action) }
    }
}

/// The outcome of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It succeeded.
    Passed,
    /// It ended with an error, or panicked.
    Failed,
    /// It was stopped together with the run.
    Stopped,
    /// It did not start.
    NotRun,
}

impl Outcome {
    /// Returns the outcome as a word for a table.
    pub fn word(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "FAILED",
            Self::Stopped => "ended early",
            Self::NotRun => "not run",
        }
    }
}

/// A job that has ended.
#[derive(Debug)]
pub struct Ended {
    /// The outcome.
    pub outcome: Outcome,
    /// The reason if it failed.
    pub error: Option<Error>,
    /// The failed job that kept it from running.
    pub barred_by: Option<usize>,
    /// Duration of the job.
    pub took: Duration,
}

impl Ended {
    const NOT_RUN: Self =
        Self { outcome: Outcome::NotRun, error: None, barred_by: None, took: Duration::ZERO };

    /// Creates the result of a job that could not run because `job` failed.
    pub fn barred_by(job: usize) -> Self {
        Self { barred_by: Some(job), ..Self::NOT_RUN }
    }
}

#[cfg(test)]
impl Ended {
    /// Creates the result of a job that succeeded.
    pub fn passed() -> Self {
        Self { outcome: Outcome::Passed, ..Self::NOT_RUN }
    }

    /// Creates the result of a job that failed.
    pub fn failed(error: Error) -> Self {
        Self { outcome: Outcome::Failed, error: Some(error), ..Self::NOT_RUN }
    }
}

/// An event of a job.
#[derive(Clone, Copy)]
pub enum Event<'e> {
    /// It starts.
    Starts,
    /// It has been running for more than a second.
    IsSlow,
    /// It has ended, or will not run.
    Ends(&'e Ended),
}

/// Duration after which a running job is reported.
const SLOW: Duration = Duration::from_secs(1);

/// Runs the jobs. Of those that can start, the first in order is started. After a failure all jobs continue except
/// those that depend on the failed one.
pub fn run(
    jobs: Vec<Job<'_>>,
    cores: usize,
    stop: &Stop,
    mut on: impl FnMut(usize, Event<'_>),
) -> Vec<Ended> {
    let mut ended: Vec<Ended> = jobs.iter().map(|_| Ended::NOT_RUN).collect();
    let mut plan = Plan::new(jobs.iter().map(|job| job.constraints.clone()), cores);
    let mut actions: Vec<Option<Action<'_>>> = jobs.into_iter().map(|job| Some(job.action)).collect();
    let (sender, results) = mpsc::channel();
    let mut fresh: Vec<(usize, Instant)> = Vec::new();
    thread::scope(|scope| {
        loop {
            while let Some((job, cause)) = plan.barred().filter(|_| !stop.is_set()) {
                plan.set(job, State::Barred(cause));
                let barred = Ended::barred_by(cause);
                on(job, Event::Ends(&barred));
                put(&mut ended, job, barred);
            }
            while let Some(job) = plan.next().filter(|_| !stop.is_set()) {
                plan.set(job, State::Running);
                on(job, Event::Starts);
                fresh.push((job, Instant::now()));
                let (action, sender) = (actions.get_mut(job).and_then(Option::take), sender.clone());
                scope.spawn(move || sender.send((job, finish(action, stop))));
            }
            if plan.running().next().is_none() {
                return;
            }
            let result = results.recv_timeout(SLOW);
            let is_done = |job: usize| result.as_ref().is_ok_and(|(done, _)| *done == job);
            fresh.retain(|(job, started)| {
                let is_slow = started.elapsed() >= SLOW && !is_done(*job);
                if is_slow {
                    on(*job, Event::IsSlow);
                }
                !is_slow && !is_done(*job)
            });
            let Ok((job, result)) = result else { continue };
            let has_passed = result.outcome == Outcome::Passed;
            plan.set(job, if has_passed { State::Passed } else { State::Failed });
            on(job, Event::Ends(&result));
            put(&mut ended, job, result);
        }
    });
    ended
}

fn put(all: &mut [Ended], job: usize, ended: Ended) {
    if let Some(place) = all.get_mut(job) {
        *place = ended;
    }
}

/// Runs a job in its thread.
fn finish(action: Option<Action<'_>>, stop: &Stop) -> Ended {
    let started = Instant::now();
    let result = panic::catch_unwind(AssertUnwindSafe(|| action.map_or(Ok(()), |action| action())));
    let (outcome, error) = match result.unwrap_or_else(|_| Err(anyhow!("it panicked"))) {
        Ok(()) => (Outcome::Passed, None),
        Err(_) if stop.is_set() => (Outcome::Stopped, None),
        Err(error) => (Outcome::Failed, Some(error)),
    };
    Ended { outcome, error, barred_by: None, took: started.elapsed() }
}

#[cfg(test)]
mod tests {
    use std::sync::{Barrier, Mutex};

    use anyhow::bail;

    use super::*;

    fn after(after: &[usize]) -> Constraints {
        Constraints { load: Load::Full, resource: None, after: after.to_vec() }
    }

    #[test]
    fn independent_jobs_run_in_parallel_and_dependent_ones_later() {
        let said = Mutex::new(Vec::new());
        let say = |word| {
            said.lock().unwrap().push(word);
            Ok(())
        };
        // Neither gets past the barrier alone.
        let both = Barrier::new(2);
        let meet = |word| {
            both.wait();
            say(word)
        };
        let jobs = vec![
            Job::new(after(&[]), || meet("first")),
            Job::new(after(&[]), || meet("first")),
            Job::new(after(&[0, 1]), || say("last")),
        ];
        let ended = run(jobs, 2, &Stop::default(), |_, _| {});
        assert!(ended.iter().all(|job| job.outcome == Outcome::Passed), "{ended:?}");
        assert_eq!(*said.lock().unwrap(), ["first", "first", "last"]);
    }

    #[test]
    fn a_failure_stops_only_dependent_jobs() {
        let jobs = vec![
            Job::new(after(&[]), || bail!("broken")),
            Job::new(after(&[0]), || panic!("started without what it depends on")),
            Job::new(after(&[1]), || panic!("started without what it depends on")),
            Job::new(after(&[]), || Ok(())),
        ];
        let mut events = Vec::new();
        let ended = run(jobs, 1, &Stop::default(), |job, event| {
            if let Event::Ends(ended) = event {
                events.push((job, ended.outcome));
            }
        });
        let outcomes: Vec<_> = ended.iter().map(|job| (job.outcome, job.barred_by)).collect();
        assert_eq!(
            outcomes,
            [
                (Outcome::Failed, None),
                (Outcome::NotRun, Some(0)),
                (Outcome::NotRun, Some(0)),
                (Outcome::Passed, None)
            ]
        );
        assert_eq!(ended[0].error.as_ref().unwrap().to_string(), "broken");
        let order = [(0, Outcome::Failed), (1, Outcome::NotRun), (2, Outcome::NotRun), (3, Outcome::Passed)];
        assert_eq!(events, order);
    }

    #[test]
    fn the_end_of_a_run_stops_running_jobs_and_starts_no_more() {
        let stop = Stop::default();
        let until_stopped = || {
            let started = Instant::now();
            while !stop.is_set() && started.elapsed() < Duration::from_secs(60) {
                thread::sleep(Duration::from_millis(5));
            }
            bail!("stopped")
        };
        let end = || {
            stop.set();
            Ok(())
        };
        let never = || panic!("started after the end");
        let jobs = vec![
            Job::new(after(&[]), until_stopped),
            Job::new(after(&[]), end),
            Job::new(after(&[]), never),
            Job::new(after(&[0]), never),
        ];
        let ended = run(jobs, 2, &stop, |_, _| {});
        let outcomes: Vec<_> = ended.iter().map(|job| (job.outcome, job.barred_by)).collect();
        assert_eq!(
            outcomes,
            [
                (Outcome::Stopped, None),
                (Outcome::Passed, None),
                (Outcome::NotRun, None),
                (Outcome::NotRun, None)
            ]
        );
    }

    #[test]
    fn a_slow_job_is_reported_once() {
        let jobs = vec![Job::new(after(&[]), || {
            thread::sleep(SLOW * 5 / 2);
            Ok(())
        })];
        let mut slow = 0;
        run(jobs, 1, &Stop::default(), |_, event| slow += usize::from(matches!(event, Event::IsSlow)));
        assert_eq!(slow, 1);
    }

    #[test]
    fn a_panic_is_a_failure() {
        let jobs = vec![Job::new(after(&[]), || panic!("expected"))];
        let ended = run(jobs, 1, &Stop::default(), |_, _| {});
        assert_eq!(ended[0].outcome, Outcome::Failed);
        assert_eq!(ended[0].error.as_ref().unwrap().to_string(), "it panicked");
    }
}
