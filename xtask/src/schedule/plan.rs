//! Selects the next job: the first in order with all constraints met.

use super::constraints::{CORE, Constraints};

/// The state of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Waiting,
    Running,
    Passed,
    Failed,
    /// It cannot run, because this job has failed.
    Barred(usize),
}

/// The jobs and their states.
pub(super) struct Plan {
    jobs: Vec<(Constraints, State)>,
    /// The load that the machine can carry, in units.
    capacity: usize,
}

impl Plan {
    pub(super) fn new(jobs: impl IntoIterator<Item = Constraints>, cores: usize) -> Self {
        let jobs = jobs.into_iter().map(|constraints| (constraints, State::Waiting)).collect();
        Self { jobs, capacity: CORE * cores.max(1) }
    }

    /// Returns the first job in order that can be started now.
    pub(super) fn next(&self) -> Option<usize> {
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

    /// Returns a job that can never run, and the job with the failure that causes this.
    pub(super) fn barred(&self) -> Option<(usize, usize)> {
        let waiting = self.jobs.iter().enumerate().filter(|(_, (_, state))| *state == State::Waiting);
        waiting.into_iter().find_map(|(job, (constraints, _))| {
            let cause = constraints.after.iter().find_map(|other| match self.jobs.get(*other)?.1 {
                State::Failed => Some(*other),
                State::Barred(cause) => Some(cause),
                State::Waiting | State::Running | State::Passed => None,
            })?;
            Some((job, cause))
        })
    }

    pub(super) fn running(&self) -> impl Iterator<Item = &Constraints> {
        self.jobs.iter().filter(|(_, state)| *state == State::Running).map(|(constraints, _)| constraints)
    }

    pub(super) fn set(&mut self, job: usize, state: State) {
        if let Some((_, place)) = self.jobs.get_mut(job) {
            *place = state;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::constraints::{Load, Resource};
    use super::*;

    fn after(load: Load, after: &[usize]) -> Constraints {
        Constraints { load, resource: None, after: after.to_vec() }
    }

    fn plan(jobs: &[(Load, &[usize])], cores: usize) -> Plan {
        Plan::new(jobs.iter().map(|(load, others)| after(*load, others)), cores)
    }

    /// Starts all possible jobs, and returns their numbers.
    fn start(plan: &mut Plan) -> Vec<usize> {
        let mut started = Vec::new();
        while let Some(job) = plan.next() {
            plan.set(job, State::Running);
            started.push(job);
        }
        started
    }

    #[test]
    fn as_many_jobs_run_as_there_are_cores() {
        let mut plan = plan(&[(Load::Full, &[][..]); 4], 2);
        assert_eq!(start(&mut plan), [0, 1]);
        plan.set(1, State::Passed);
        assert_eq!(start(&mut plan), [2]);
    }

    #[test]
    fn a_job_waits_for_all_its_dependencies() {
        let mut plan = plan(&[(Load::Full, &[]), (Load::Full, &[]), (Load::Full, &[0, 1])], 3);
        assert_eq!(start(&mut plan), [0, 1]);
        plan.set(0, State::Passed);
        assert!(start(&mut plan).is_empty());
        plan.set(1, State::Passed);
        assert_eq!(start(&mut plan), [2]);
    }

    #[test]
    fn no_job_runs_after_a_failed_dependency() {
        let mut plan = plan(&[(Load::Full, &[]), (Load::Full, &[0])], 2);
        assert_eq!(start(&mut plan), [0]);
        plan.set(0, State::Failed);
        assert!(start(&mut plan).is_empty());
    }

    #[test]
    fn barred_jobs_are_found_with_the_original_failure() {
        let mut plan =
            plan(&[(Load::Full, &[]), (Load::Full, &[0]), (Load::Full, &[1]), (Load::Full, &[])], 1);
        assert_eq!(plan.barred(), None);
        plan.set(0, State::Failed);
        assert_eq!(plan.barred(), Some((1, 0)));
        plan.set(1, State::Barred(0));
        assert_eq!(plan.barred(), Some((2, 0)));
        plan.set(2, State::Barred(0));
        assert_eq!(plan.barred(), None);
    }

    #[test]
    fn waiting_jobs_take_less_load() {
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
    fn a_measuring_job_runs_alone() {
        let jobs = [(Load::Full, &[][..]), (Load::Alone, &[]), (Load::None, &[]), (Load::Half, &[])];
        let mut plan = plan(&jobs, 2);
        assert_eq!(start(&mut plan), [0, 2, 3]);
        plan.set(3, State::Passed);
        assert!(start(&mut plan).is_empty());
        plan.set(0, State::Passed);
        assert_eq!(start(&mut plan), [1]);
    }

    #[test]
    fn a_resource_is_used_by_one_job_at_a_time() {
        let resources = [Some(Resource::Tools), Some(Resource::Tools), Some(Resource::NpmProfile), None];
        let jobs = resources.map(|resource| Constraints { load: Load::None, resource, after: vec![] });
        let mut plan = Plan::new(jobs, 1);
        assert_eq!(start(&mut plan), [0, 2, 3]);
        plan.set(0, State::Passed);
        assert_eq!(start(&mut plan), [1]);
    }

    #[test]
    fn one_core_runs_jobs_one_after_another() {
        let mut plan = plan(&[(Load::Alone, &[]), (Load::Full, &[])], 0);
        assert_eq!(start(&mut plan), [0]);
        plan.set(0, State::Passed);
        assert_eq!(start(&mut plan), [1]);
    }
}
