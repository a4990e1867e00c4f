//! Runs jobs side by side: each after those that it depends on, as many at once as the cores carry.

mod constraints;
mod plan;

use std::panic::{self, AssertUnwindSafe};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Error, Result, anyhow};

pub(crate) use self::constraints::{Constraints, Load, Resource};
use self::plan::{Plan, State};
use crate::stop::Stop;

type Action<'a> = Box<dyn FnOnce() -> Result<()> + Send + 'a>;

/// A part of a run.
pub(crate) struct Job<'a> {
    constraints: Constraints,
    action: Action<'a>,
}

impl<'a> Job<'a> {
    pub(crate) fn new(constraints: Constraints, action: impl FnOnce() -> Result<()> + Send + 'a) -> Self {
        Self { constraints, action: Box::new(action) }
    }
}

/// How a job went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Passed,
    Failed,
    /// It was ended because another one failed, or the run was interrupted.
    Stopped,
    NotRun,
}

impl Outcome {
    pub(crate) fn word(self) -> &'static str {
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
pub(crate) struct Ended {
    pub(crate) outcome: Outcome,
    /// Why it failed.
    pub(crate) error: Option<Error>,
    pub(crate) took: Duration,
}

impl Ended {
    const NOT_RUN: Self = Self { outcome: Outcome::NotRun, error: None, took: Duration::ZERO };
}

/// A job that starts or ends.
pub(crate) struct Event<'e> {
    pub(crate) job: usize,
    /// `None` at its start.
    pub(crate) ended: Option<&'e Ended>,
}

/// Runs the jobs; of those that could start, the first in their order does. After the first failure the others are told
/// to stop, and no more are started.
pub(crate) fn run(
    jobs: Vec<Job<'_>>,
    cores: usize,
    stop: &Stop,
    mut on: impl FnMut(Event<'_>),
) -> Vec<Ended> {
    let mut ended: Vec<Ended> = jobs.iter().map(|_| Ended::NOT_RUN).collect();
    let mut plan = Plan::new(jobs.iter().map(|job| job.constraints.clone()), cores);
    let mut actions: Vec<Option<Action<'_>>> = jobs.into_iter().map(|job| Some(job.action)).collect();
    let (sender, results) = mpsc::channel();
    thread::scope(|scope| {
        loop {
            while let Some(job) = plan.next().filter(|_| !stop.is_set()) {
                plan.set(job, State::Running);
                on(Event { job, ended: None });
                let (action, sender) = (actions.get_mut(job).and_then(Option::take), sender.clone());
                scope.spawn(move || sender.send((job, finish(action, stop))));
            }
            if plan.running().next().is_none() {
                return;
            }
            let Ok((job, result)) = results.recv() else { return };
            let has_passed = result.outcome == Outcome::Passed;
            plan.set(job, if has_passed { State::Passed } else { State::Failed });
            if !has_passed {
                stop.set();
            }
            on(Event { job, ended: Some(&result) });
            if let Some(place) = ended.get_mut(job) {
                *place = result;
            }
        }
    });
    ended
}

/// Runs one job in its thread.
fn finish(action: Option<Action<'_>>, stop: &Stop) -> Ended {
    let started = Instant::now();
    let result = panic::catch_unwind(AssertUnwindSafe(|| action.map_or(Ok(()), |action| action())));
    let (outcome, error) = match result.unwrap_or_else(|_| Err(anyhow!("it panicked"))) {
        Ok(()) => (Outcome::Passed, None),
        Err(_) if stop.is_set() => (Outcome::Stopped, None),
        Err(error) => (Outcome::Failed, Some(error)),
    };
    Ended { outcome, error, took: started.elapsed() }
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
    fn jobs_run_side_by_side_and_those_after_them_later() {
        let said = Mutex::new(Vec::new());
        let say = |word| {
            said.lock().unwrap().push(word);
            Ok(())
        };
        // Neither gets past it alone.
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
        let ended = run(jobs, 2, &Stop::default(), |_| {});
        assert!(ended.iter().all(|job| job.outcome == Outcome::Passed), "{ended:?}");
        assert_eq!(*said.lock().unwrap(), ["first", "first", "last"]);
    }

    #[test]
    fn the_first_failure_stops_the_others() {
        let stop = Stop::default();
        let until_told = || {
            let started = Instant::now();
            while !stop.is_set() && started.elapsed() < Duration::from_secs(60) {
                thread::sleep(Duration::from_millis(5));
            }
            bail!("told to stop")
        };
        let jobs = vec![
            Job::new(after(&[]), until_told),
            Job::new(after(&[]), || bail!("broken")),
            Job::new(after(&[]), || panic!("started after a failure")),
        ];
        let mut events = Vec::new();
        let ended = run(jobs, 2, &stop, |event| events.push((event.job, event.ended.is_some())));
        let outcomes: Vec<_> = ended.iter().map(|job| job.outcome).collect();
        assert_eq!(outcomes, [Outcome::Stopped, Outcome::Failed, Outcome::NotRun]);
        assert_eq!(ended[1].error.as_ref().unwrap().to_string(), "broken");
        assert_eq!(events, [(0, false), (1, false), (1, true), (0, true)]);
    }

    #[test]
    fn a_panic_is_a_failure() {
        let jobs = vec![Job::new(after(&[]), || panic!("expected"))];
        let ended = run(jobs, 1, &Stop::default(), |_| {});
        assert_eq!(ended[0].outcome, Outcome::Failed);
        assert_eq!(ended[0].error.as_ref().unwrap().to_string(), "it panicked");
    }
}
