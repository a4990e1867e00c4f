//! The native threads that run all endpoints of a process, and the detection of forked processes.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use pyo3::prelude::*;
use tokio::runtime::{Builder, Handle, Runtime};

use crate::errors;

/// The tokio runtime. Its threads never call Python, and are not joined when the process exits.
static RUNTIME: OnceLock<Runtime> = OnceLock::new();
/// Prevents two Python threads from starting two runtimes.
static STARTING: Mutex<()> = Mutex::new(());
/// True in a child that was forked after the threads had started, and therefore lacks them.
static IS_ORPHANED: AtomicBool = AtomicBool::new(false);

/// The number of threads: one can receive datagrams while the other runs the protocol.
const THREADS: usize = 2;

/// Returns the runtime, and starts it on the first call.
pub(crate) fn handle(py: Python<'_>) -> PyResult<&'static Handle> {
    check_fork(py)?;
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime.handle());
    }
    let started = py.detach(start);
    started.map_err(|error| errors::new(py, "RakwireError", (format!("cannot start a thread: {error}"),)))
}

fn start() -> io::Result<&'static Handle> {
    let _starting = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    if RUNTIME.get().is_none() {
        let runtime = Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("rakwire")
            .enable_all()
            .build()?;
        return Ok(RUNTIME.get_or_init(|| runtime).handle());
    }
    RUNTIME.get().map(Runtime::handle).ok_or_else(|| io::Error::other("the runtime is missing"))
}

/// Returns true in a child that was forked after the threads had started.
pub(crate) fn is_orphaned() -> bool {
    IS_ORPHANED.load(Ordering::Relaxed)
}

/// Returns an error in a child that was forked after the threads had started.
pub(crate) fn check_fork(py: Python<'_>) -> PyResult<()> {
    if !is_orphaned() {
        return Ok(());
    }
    let text = "this process was forked after rakwire had started its threads, which a fork does not copy; fork before the \
                first endpoint, or start the process with multiprocessing.get_context(\"spawn\")";
    Err(errors::new(py, "ForkError", (text,)))
}

/// Records that this process is a forked child. The package registers it with `os.register_at_fork`.
#[pyfunction]
pub(crate) fn after_fork_in_child() {
    if RUNTIME.get().is_some() {
        IS_ORPHANED.store(true, Ordering::Relaxed);
    }
}

/// A value that belongs to the driver. A forked child leaks the value, because dropping it could wait for a lock held
/// by a thread that the child lacks.
#[derive(Debug)]
pub(crate) struct Owned<T>(Option<T>);

impl<T> Owned<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(Some(value))
    }

    /// Returns the value, or an error in a forked child.
    pub(crate) fn get(&self, py: Python<'_>) -> PyResult<&T> {
        check_fork(py)?;
        self.0.as_ref().ok_or_else(|| errors::new(py, "RakwireError", ("the value was dropped",)))
    }

    /// Returns the value mutably, or None if it was taken.
    pub(crate) const fn get_mut(&mut self) -> Option<&mut T> {
        self.0.as_mut()
    }

    /// Removes and returns the value.
    pub(crate) const fn take(&mut self) -> Option<T> {
        self.0.take()
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        if is_orphaned() {
            std::mem::forget(self.0.take());
        }
    }
}
