//! What decides when a job may start: how much of the machine it takes, what it has for itself, and what comes before.

/// A core in units of load.
pub(super) const CORE: usize = 2;

/// How much of the machine a job keeps busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
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
    pub(super) fn units(self, all: usize) -> usize {
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
pub enum Resource {
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

/// What the choice of the next job depends on.
#[derive(Clone, Debug)]
pub struct Constraints {
    /// How much of the machine it takes.
    pub load: Load,
    /// The one thing that it needs for itself.
    pub resource: Option<Resource>,
    /// The numbers of the jobs that must have passed.
    pub after: Vec<usize>,
}
