//! Conditions for starting a job: its load, its exclusive resource, and the jobs that it depends on.

/// A core in units of load.
pub(super) const CORE: usize = 2;

/// The load of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// It waits for the network or a disk.
    None,
    /// It is idle for about half of its time.
    Half,
    /// It keeps a core busy.
    Full,
    /// It measures: nothing else that computes may run.
    Alone,
}

impl Load {
    /// Returns its units out of `all`.
    pub(super) fn units(self, all: usize) -> usize {
        match self {
            Self::None => 0,
            Self::Half => CORE / 2,
            Self::Full => CORE,
            Self::Alone => all,
        }
    }
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
