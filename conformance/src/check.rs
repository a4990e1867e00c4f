//! Results of checks, and their timeouts.

use std::io;
use std::time::Duration;

/// The reason for which a check ends early.
#[derive(Debug)]
pub enum Stop {
    /// The peer broke the requirement.
    Failed(String),
    /// The case does not apply to this peer.
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

/// Ends a check as failed.
pub fn fail<T>(reason: impl Into<String>) -> Check<T> {
    Err(Stop::Failed(reason.into()))
}

/// Ends a check as not applicable.
pub fn skip<T>(reason: impl Into<String>) -> Check<T> {
    Err(Stop::Skipped(reason.into()))
}

/// Fails unless `holds`.
pub fn ensure(holds: bool, reason: impl FnOnce() -> String) -> Check {
    if holds { Ok(()) } else { Err(Stop::Failed(reason())) }
}

/// Timeouts of a case.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// For an answer that is due immediately.
    pub answer: Duration,
    /// Before silence counts as no answer.
    pub quiet: Duration,
    /// The longest time after which a peer closes a silent connection.
    pub lifetime: Duration,
}

impl Timing {
    /// The times for a real server, with the given time for an answer.
    #[must_use]
    pub fn with_answer(answer: Duration) -> Self {
        Self { answer, quiet: answer / 4, lifetime: Duration::from_secs(15) }
    }
}
