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

    /// Jobs with their loads and dependencies.
    type Jobs<'a> = &'a [(Load, &'a [usize])];

    fn plan(jobs: Jobs<'_>, cores: usize) -> Plan {
        let constraints = |load, after: &[usize]| Constraints { load, resource: None, after: after.to_vec() };
        Plan::new(jobs.iter().map(|(load, after)| constraints(*load, after)), cores)
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
    fn jobs_start_as_cores_load_and_dependencies_allow() {
        use Load::{Alone, Full, Half, None};
        use State::{Failed, Passed};

        /// The rule, the cores, the jobs, those that start first, and each result with those that start then.
        type Case<'a> = (&'a str, usize, Jobs<'a>, &'a [usize], &'a [(usize, State, &'a [usize])]);
        let cases: [Case<'_>; 6] = [
            ("each takes a core", 2, &[(Full, &[][..]); 4], &[0, 1], &[(1, Passed, &[2])]),
            (
                "all dependencies have passed",
                3,
                &[(Full, &[]), (Full, &[]), (Full, &[0, 1])],
                &[0, 1],
                &[(0, Passed, &[]), (1, Passed, &[2])],
            ),
            ("none starts after a failure", 2, &[(Full, &[]), (Full, &[0])], &[0], &[(0, Failed, &[])]),
            (
                "waiting takes less",
                2,
                &[(Half, &[]), (Half, &[]), (None, &[]), (Full, &[]), (Half, &[])],
                &[0, 1, 2, 3],
                &[],
            ),
            (
                "a measurement runs alone",
                2,
                &[(Full, &[]), (Alone, &[]), (None, &[]), (Half, &[])],
                &[0, 2, 3],
                &[(3, Passed, &[]), (0, Passed, &[1])],
            ),
            ("one core runs one at a time", 0, &[(Alone, &[]), (Full, &[])], &[0], &[(0, Passed, &[1])]),
        ];
        for (rule, cores, jobs, first, results) in cases {
            let mut plan = plan(jobs, cores);
            assert_eq!(start(&mut plan), first, "{rule}");
            for (job, state, then) in results {
                plan.set(*job, *state);
                assert_eq!(start(&mut plan), *then, "{rule}");
            }
        }
    }

    #[test]
    fn blocked_jobs_are_found_with_the_original_failure() {
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
    fn a_resource_is_used_by_one_job_at_a_time() {
        let resources = [Some(Resource::Tools), Some(Resource::Tools), Some(Resource::NpmProfile), None];
        let jobs = resources.map(|resource| Constraints { load: Load::None, resource, after: vec![] });
        let mut plan = Plan::new(jobs, 1);
        assert_eq!(start(&mut plan), [0, 2, 3]);
        plan.set(0, State::Passed);
        assert_eq!(start(&mut plan), [1]);
    }
}
