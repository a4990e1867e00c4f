//! Runs jobs in parallel. Each starts after its dependencies, and the cores limit the number of running jobs.

use std::collections::BTreeMap;
use std::panic::{self, AssertUnwindSafe};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Error, Result, anyhow};

use crate::stop::Stop;

/// The capacity of a core in units of load.
const CORE: usize = 2;
/// The duration after which a running job is reported.
const SLOW: Duration = Duration::from_secs(1);

/// The load of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// The job waits for the network or a disk.
    None,
    /// The job is idle for about half of its time.
    Half,
    /// The job keeps a core busy.
    Full,
    /// The job measures, so no other job with a load may run.
    Alone,
}

/// A resource that only one job at a time may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// The system's package manager.
    SystemPackages,
    /// Rustup, and its toolchains.
    Toolchains,
    /// The build folder of the tools.
    Tools,
    /// The build folder of the profile `dev`. Cargo locks it, but a job waiting for that lock would occupy a core of
    /// the schedule.
    DevProfile,
    /// The build folder of the profile `release`.
    ReleaseProfile,
    /// The build folder of the profile `npm`.
    NpmProfile,
}

/// The conditions for starting a job.
#[derive(Clone, Debug)]
pub struct Constraints {
    /// Its load.
    pub load: Load,
    /// Its exclusive resource.
    pub resource: Option<Resource>,
    /// The numbers of the jobs that must have passed.
    pub after: Vec<usize>,
}

/// The outcome of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The job succeeded.
    Passed,
    /// The job returned an error or panicked.
    Failed,
    /// The job was stopped together with the run.
    Stopped,
    /// The job did not start.
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
    /// The failed job on which this job depends, if that is why it did not run.
    pub barred_by: Option<usize>,
    /// Duration of the job.
    pub took: Duration,
}

/// An event of a job.
#[derive(Clone, Copy)]
pub enum Event<'e> {
    /// The job starts.
    Starts,
    /// The job has been running for more than a second.
    IsSlow,
    /// The job has ended, or will not run.
    Ends(&'e Ended),
}

/// The state of a run.
struct Plan<'c> {
    jobs: &'c [Constraints],
    /// The load that the machine can carry, in units.
    capacity: usize,
    /// The running jobs, each with its start and true once it was reported as slow.
    running: BTreeMap<usize, (Instant, bool)>,
    ended: BTreeMap<usize, Ended>,
}

impl Plan<'_> {
    fn waiting(&self) -> impl Iterator<Item = (usize, &Constraints)> {
        let has_started = |job: &usize| self.running.contains_key(job) || self.ended.contains_key(job);
        self.jobs.iter().enumerate().filter(move |(job, _)| !has_started(job))
    }

    /// Returns the first job in order that can be started now.
    fn next(&self) -> Option<usize> {
        let units = |load| match load {
            Load::None => 0,
            Load::Half => CORE / 2,
            Load::Full => CORE,
            Load::Alone => self.capacity,
        };
        let running = || self.running.keys().filter_map(|job| self.jobs.get(*job));
        let taken: usize = running().map(|other| units(other.load)).sum();
        let is_free = |job: &Constraints| {
            job.resource.is_none() || running().all(|other| other.resource != job.resource)
        };
        let has_passed =
            |job: &usize| matches!(self.ended.get(job), Some(Ended { outcome: Outcome::Passed, .. }));
        let can_start = |job: &Constraints| {
            taken + units(job.load) <= self.capacity && is_free(job) && job.after.iter().all(has_passed)
        };
        self.waiting().find(|(_, constraints)| can_start(constraints)).map(|(job, _)| job)
    }

    /// Returns a job that can never run, and the failed job on which it depends.
    fn barred(&self) -> Option<(usize, usize)> {
        self.waiting().find_map(|(job, constraints)| {
            let cause = constraints.after.iter().find_map(|other| match self.ended.get(other)? {
                Ended { outcome: Outcome::Failed, .. } => Some(*other),
                ended => ended.barred_by,
            })?;
            Some((job, cause))
        })
    }
}

/// Runs jobs with these constraints. Of the jobs that can start, the first in order starts first. After a failure, all
/// jobs continue except those that depend on the failed job.
pub fn run(
    jobs: &[Constraints],
    cores: usize,
    stop: &Stop,
    run: impl Fn(usize) -> Result<()> + Sync,
    mut on: impl FnMut(usize, Event<'_>),
) -> Vec<Ended> {
    let (running, ended) = (BTreeMap::new(), BTreeMap::new());
    let mut plan = Plan { jobs, capacity: CORE * cores.max(1), running, ended };
    let (sender, results) = mpsc::channel();
    let run = &run;
    let not_run =
        |barred_by| Ended { outcome: Outcome::NotRun, error: None, barred_by, took: Duration::ZERO };
    thread::scope(|scope| {
        loop {
            while let Some((job, cause)) = plan.barred().filter(|_| !stop.is_set()) {
                let ended = not_run(Some(cause));
                on(job, Event::Ends(&ended));
                plan.ended.insert(job, ended);
            }
            while let Some(job) = plan.next().filter(|_| !stop.is_set()) {
                on(job, Event::Starts);
                plan.running.insert(job, (Instant::now(), false));
                let sender = sender.clone();
                scope.spawn(move || sender.send((job, finish(|| run(job), stop))));
            }
            if plan.running.is_empty() {
                break;
            }
            if let Ok((job, ended)) = results.recv_timeout(SLOW) {
                plan.running.remove(&job);
                on(job, Event::Ends(&ended));
                plan.ended.insert(job, ended);
            }
            for (job, (started, is_reported)) in &mut plan.running {
                if !*is_reported && started.elapsed() >= SLOW {
                    *is_reported = true;
                    on(*job, Event::IsSlow);
                }
            }
        }
    });
    (0..jobs.len()).map(|job| plan.ended.remove(&job).unwrap_or_else(|| not_run(None))).collect()
}

/// Runs a job in its thread.
fn finish(action: impl FnOnce() -> Result<()>, stop: &Stop) -> Ended {
    let started = Instant::now();
    let result = panic::catch_unwind(AssertUnwindSafe(action));
    let (outcome, error) = match result.unwrap_or_else(|_| Err(anyhow!("it panicked"))) {
        Ok(()) => (Outcome::Passed, None),
        Err(_) if stop.is_set() => (Outcome::Stopped, None),
        Err(error) => (Outcome::Failed, Some(error)),
    };
    Ended { outcome, error, barred_by: None, took: started.elapsed() }
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::*;

    fn job(load: Load, after: &[usize]) -> Constraints {
        Constraints { load, resource: None, after: after.to_vec() }
    }

    /// Starts all possible jobs, and returns their numbers.
    fn start(plan: &mut Plan<'_>) -> Vec<usize> {
        let mut started = Vec::new();
        while let Some(job) = plan.next() {
            plan.running.insert(job, (Instant::now(), false));
            started.push(job);
        }
        started
    }

    fn pass(plan: &mut Plan<'_>, job: usize) -> Vec<usize> {
        plan.running.remove(&job);
        plan.ended.insert(job, finish(|| Ok(()), &Stop::default()));
        start(plan)
    }

    fn plan(jobs: &[Constraints], cores: usize) -> Plan<'_> {
        Plan { jobs, capacity: CORE * cores, running: BTreeMap::new(), ended: BTreeMap::new() }
    }

    #[test]
    fn jobs_start_as_cores_load_and_dependencies_allow() {
        use Load::{Alone, Full, Half, None};

        let jobs = [job(Full, &[]), job(Full, &[]), job(Full, &[0, 1]), job(Half, &[]), job(Half, &[])];
        let mut two_cores = plan(&jobs, 2);
        assert_eq!(start(&mut two_cores), [0, 1]);
        assert_eq!(pass(&mut two_cores, 0), [3, 4]);
        assert_eq!(pass(&mut two_cores, 1), [2]);
        let jobs = [job(Full, &[]), job(Alone, &[]), job(None, &[]), job(Half, &[])];
        let mut measured = plan(&jobs, 2);
        assert_eq!(start(&mut measured), [0, 2, 3]);
        assert_eq!((pass(&mut measured, 3), pass(&mut measured, 0)), (vec![], vec![1]));
    }

    #[test]
    fn a_resource_is_used_by_one_job_at_a_time() {
        let resources = [Some(Resource::Tools), Some(Resource::Tools), Some(Resource::NpmProfile), None];
        let jobs = resources.map(|resource| Constraints { load: Load::None, resource, after: vec![] });
        let mut plan = plan(&jobs, 1);
        assert_eq!(start(&mut plan), [0, 2, 3]);
        assert_eq!(pass(&mut plan, 0), [1]);
    }

    #[test]
    fn a_failure_or_a_panic_stops_only_dependent_jobs() {
        let jobs = [job(Load::Full, &[]), job(Load::Full, &[0]), job(Load::Full, &[1]), job(Load::Full, &[])];
        let fail = |number| match number {
            0 => bail!("broken"),
            3 => panic!("expected"),
            _ => panic!("started although its dependency failed"),
        };
        let mut events = Vec::new();
        let ended = run(&jobs, 1, &Stop::default(), fail, |job, event| {
            if let Event::Ends(_) = event {
                events.push(job);
            }
        });
        let outcomes: Vec<_> = ended.iter().map(|job| (job.outcome, job.barred_by)).collect();
        let not_run = (Outcome::NotRun, Some(0));
        assert_eq!(outcomes, [(Outcome::Failed, None), not_run, not_run, (Outcome::Failed, None)]);
        let error = |job: usize| ended[job].error.as_ref().unwrap().to_string();
        assert_eq!((error(0), error(3)), ("broken".to_owned(), "it panicked".to_owned()));
        assert_eq!(events, [0, 1, 2, 3]);
    }

    #[test]
    fn a_stop_signal_stops_running_jobs_and_prevents_further_ones() {
        let stop = Stop::default();
        let jobs = [job(Load::Full, &[]), job(Load::Full, &[]), job(Load::Full, &[]), job(Load::Full, &[0])];
        let action = |number| match number {
            0 => {
                let started = Instant::now();
                while !stop.is_set() && started.elapsed() < Duration::from_secs(60) {
                    thread::sleep(Duration::from_millis(5));
                }
                bail!("stopped")
            }
            1 => {
                // Runs long enough to be reported as slow once.
                thread::sleep(SLOW * 5 / 2);
                stop.set();
                Ok(())
            }
            _ => panic!("started after the stop signal"),
        };
        let mut slow = 0;
        let count = |job, event: Event<'_>| slow += usize::from(job == 1 && matches!(event, Event::IsSlow));
        let outcomes: Vec<_> = run(&jobs, 2, &stop, action, count).iter().map(|job| job.outcome).collect();
        assert_eq!(outcomes, [Outcome::Stopped, Outcome::Passed, Outcome::NotRun, Outcome::NotRun]);
        assert_eq!(slow, 1);
    }
}
