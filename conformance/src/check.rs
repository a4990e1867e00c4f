//! The results of checks, and the time limits that they use.

use std::io;
use std::time::Duration;

/// The reason why a check stopped early.
#[derive(Debug)]
pub enum Stop {
    /// The peer did not meet the requirement, for this reason.
    Failed(String),
    /// The case does not apply to this peer, for this reason.
    Skipped(String),
    /// The socket of the suite failed.
    Socket(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Socket(error)
    }
}

/// The result of a check.
pub type Check<T = ()> = Result<T, Stop>;

/// Stops a check as failed.
pub fn fail<T>(reason: impl Into<String>) -> Check<T> {
    Err(Stop::Failed(reason.into()))
}

/// Stops a check as not applicable.
pub fn skip<T>(reason: impl Into<String>) -> Check<T> {
    Err(Stop::Skipped(reason.into()))
}

/// Fails with `reason` unless `holds`.
pub fn ensure(holds: bool, reason: impl FnOnce() -> String) -> Check {
    if holds { Ok(()) } else { Err(Stop::Failed(reason())) }
}

/// The time limits of a case.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// The time limit for an answer that is due immediately.
    pub answer: Duration,
    /// The time without an answer after which a check concludes that there is none.
    pub quiet: Duration,
    /// The maximum time after which a peer closes an unresponsive connection.
    pub lifetime: Duration,
}

impl Timing {
    /// Returns the limits for a real peer, derived from the time limit for an answer.
    #[must_use]
    pub fn with_answer(answer: Duration) -> Self {
        Self { answer, quiet: answer / 4, lifetime: Duration::from_secs(15) }
    }
}
