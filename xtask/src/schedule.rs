//! Runs jobs side by side: each after those that it depends on, as many at once as the cores carry.

use std::panic::{self, AssertUnwindSafe};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Error, Result, anyhow};

use crate::process::Stop;

/// A core in units of load.
const CORE: usize = 2;

/// How much of the machine a job keeps busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Load {
    /// It waits for the network or a disk.
    None,
    /// It waits about half of its time.
    Half,
    /// It keeps a core busy.
    Full,
    /// It measures: nothing else that computes may run.
    Alone,
}

impl Load {
    /// The units that it takes of `all`.
    fn units(self, all: usize) -> usize {
        match self {
            Self::None => 0,
            Self::Half => CORE / 2,
            Self::Full => CORE,
            Self::Alone => all,
        }
    }
}

/// What only one job at a time may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resource {
    /// The system's package manager.
    SystemPackages,
    /// Rustup, and the toolchains that it keeps.
    Toolchains,
    /// The folder in which cargo builds the tools.
    Tools,
    /// The folder of the profile `dev`. Cargo has a lock for it, but whoever waits for that one keeps others waiting.
    DevProfile,
    /// The folder of the profile `release`.
    ReleaseProfile,
    /// The folder of the profile `npm`.
    NpmProfile,
}

type Action<'a> = Box<dyn FnOnce() -> Result<()> + Send + 'a>;

/// What the choice of the next job depends on.
#[derive(Clone, Debug)]
pub(crate) struct Constraints {
    pub(crate) load: Load,
    pub(crate) resource: Option<Resource>,
    /// The numbers of the jobs that must have passed.
    pub(crate) after: Vec<usize>,
}

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

/// Where a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waiting,
    Running,
    Passed,
    Failed,
}

/// The jobs, and where each of them is.
struct Plan {
    jobs: Vec<(Constraints, State)>,
    /// The units of load that the machine carries.
    capacity: usize,
}

impl Plan {
    fn new(jobs: impl IntoIterator<Item = Constraints>, cores: usize) -> Self {
        let jobs = jobs.into_iter().map(|constraints| (constraints, State::Waiting)).collect();
        Self { jobs, capacity: CORE * cores.max(1) }
    }

    /// The first job in their order that can be started now.
    fn next(&self) -> Option<usize> {
        self.jobs
            .iter()
            .position(|(constraints, state)| *state == State::Waiting && self.can_start(constraints))
    }

    fn can_start(&self, constraints: &Constraints) -> bool {
        let taken: usize = self.running().map(|other| other.load.units(self.capacity)).sum();
        let fits = taken + constraints.load.units(self.capacity) <= self.capacity;
        let is_resource_free = constraints.resource.is_none()
            || self.running().all(|other| other.resource != constraints.resource);
        let has_passed = |job: &usize| self.jobs.get(*job).is_some_and(|(_, state)| *state == State::Passed);
        fits && is_resource_free && constraints.after.iter().all(has_passed)
    }

    fn running(&self) -> impl Iterator<Item = &Constraints> {
        self.jobs.iter().filter(|(_, state)| *state == State::Running).map(|(constraints, _)| constraints)
    }

    fn set(&mut self, job: usize, state: State) {
        if let Some((_, place)) = self.jobs.get_mut(job) {
            *place = state;
        }
    }
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

    fn after(load: Load, after: &[usize]) -> Constraints {
        Constraints { load, resource: None, after: after.to_vec() }
    }

    fn plan(jobs: &[(Load, &[usize])], cores: usize) -> Plan {
        Plan::new(jobs.iter().map(|(load, others)| after(*load, others)), cores)
    }

    /// Starts all that can be, and gives back their numbers.
    fn start(plan: &mut Plan) -> Vec<usize> {
        let mut started = Vec::new();
        while let Some(job) = plan.next() {
            plan.set(job, State::Running);
            started.push(job);
        }
        started
    }

    #[test]
    fn as_many_run_as_there_are_cores_in_their_order() {
        let mut plan = plan(&[(Load::Full, &[][..]); 4], 2);
        assert_eq!(start(&mut plan), [0, 1]);
        plan.set(1, State::Passed);
        assert_eq!(start(&mut plan), [2]);
    }

    #[test]
    fn a_job_waits_for_all_that_it_depends_on() {
        let mut plan = plan(&[(Load::Full, &[]), (Load::Full, &[]), (Load::Full, &[0, 1])], 3);
        assert_eq!(start(&mut plan), [0, 1]);
        plan.set(0, State::Passed);
        assert!(start(&mut plan).is_empty());
        plan.set(1, State::Passed);
        assert_eq!(start(&mut plan), [2]);
    }

    #[test]
    fn nothing_runs_after_a_failure_of_what_it_depends_on() {
        let mut plan = plan(&[(Load::Full, &[]), (Load::Full, &[0])], 2);
        assert_eq!(start(&mut plan), [0]);
        plan.set(0, State::Failed);
        assert!(start(&mut plan).is_empty());
    }

    #[test]
    fn those_that_wait_take_less_room() {
        let jobs = [
            (Load::Half, &[][..]),
            (Load::Half, &[]),
            (Load::None, &[]),
            (Load::Full, &[]),
            (Load::Half, &[]),
        ];
        assert_eq!(start(&mut plan(&jobs, 2)), [0, 1, 2, 3]);
    }

    #[test]
    fn one_that_measures_runs_alone() {
        let jobs = [(Load::Full, &[][..]), (Load::Alone, &[]), (Load::None, &[]), (Load::Half, &[])];
        let mut plan = plan(&jobs, 2);
        assert_eq!(start(&mut plan), [0, 2, 3]);
        plan.set(3, State::Passed);
        assert!(start(&mut plan).is_empty());
        plan.set(0, State::Passed);
        assert_eq!(start(&mut plan), [1]);
    }

    #[test]
    fn a_resource_is_used_by_one_at_a_time() {
        let resources = [Some(Resource::Tools), Some(Resource::Tools), Some(Resource::NpmProfile), None];
        let jobs = resources.map(|resource| Constraints { load: Load::None, resource, after: vec![] });
        let mut plan = Plan::new(jobs, 1);
        assert_eq!(start(&mut plan), [0, 2, 3]);
        plan.set(0, State::Passed);
        assert_eq!(start(&mut plan), [1]);
    }

    #[test]
    fn one_core_runs_one_after_the_other() {
        let mut plan = plan(&[(Load::Alone, &[]), (Load::Full, &[])], 0);
        assert_eq!(start(&mut plan), [0]);
        plan.set(0, State::Passed);
        assert_eq!(start(&mut plan), [1]);
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
            Job::new(after(Load::Full, &[]), || meet("first")),
            Job::new(after(Load::Full, &[]), || meet("first")),
            Job::new(after(Load::Full, &[0, 1]), || say("last")),
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
            Job::new(after(Load::Full, &[]), until_told),
            Job::new(after(Load::Full, &[]), || bail!("broken")),
            Job::new(after(Load::Full, &[]), || panic!("started after a failure")),
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
        let jobs = vec![Job::new(after(Load::Full, &[]), || panic!("expected"))];
        let ended = run(jobs, 1, &Stop::default(), |_| {});
        assert_eq!(ended[0].outcome, Outcome::Failed);
        assert_eq!(ended[0].error.as_ref().unwrap().to_string(), "it panicked");
    }
}
