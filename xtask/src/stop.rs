//! Reasons to stop a run early: a signal to this process, or the failure of another part.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Makes SIGINT, SIGTERM and SIGHUP set [`interrupted`].
pub fn watch_signals() -> Result<()> {
    ctrlc::set_handler(|| INTERRUPTED.store(true, Ordering::SeqCst))
        .context("the signal handler cannot be set")
}

/// Returns true once this process has to stop.
pub fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::SeqCst)
}

/// A stop signal for a run. It is also set when this process must stop.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Requests the end of the run.
    pub fn set(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Returns true if the run has to end.
    pub fn is_set(&self) -> bool {
        interrupted() || self.0.load(Ordering::SeqCst)
    }
}
