//! Wraps futures of the driver as Python awaitables.
//!
//! The event loop's thread polls the futures. When a task is cancelled, its future is dropped. No message is lost:
//! either the future has already returned it to the task, or it is still queued.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use pyo3::exceptions::{PyRuntimeError, PyStopIteration};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::bell::{Alarm, Bell, Listener};
use crate::errors;
use crate::runtime::{self, Owned};

/// Converts the result of a future to a Python object, on the event loop's thread.
pub(crate) type Finish = Box<dyn for<'py> FnOnce(Python<'py>) -> PyResult<Py<PyAny>> + Send>;
type Work = Pin<Box<dyn Future<Output = Finish> + Send>>;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Connects one event loop to the driver: wakes tasks of the loop when their operations are ready.
#[pyclass(frozen, weakref, module = "rakwire._native")]
#[derive(Debug)]
pub(crate) struct Bridge {
    bell: Arc<Bell>,
    listener: Arc<Listener>,
    waiting: Mutex<HashMap<u64, Py<PyAny>>>,
    next: AtomicU64,
}

#[pymethods]
impl Bridge {
    #[new]
    fn new() -> PyResult<Self> {
        let (bell, listener) = Bell::new().map_err(|error| errors::system(&error))?;
        Ok(Self { bell, listener: Arc::new(listener), waiting: Mutex::default(), next: AtomicU64::new(0) })
    }

    /// Returns the file descriptor of the socket that the loop watches.
    fn fileno(&self) -> i64 {
        self.listener.fileno()
    }

    /// Wakes the tasks of operations that are ready. The loop calls this when the socket is readable.
    fn wake(&self, py: Python<'_>) -> PyResult<()> {
        self.listener.clear();
        self.wake_waiting(py)
    }

    /// Wakes the tasks of operations that are ready. Unlike `wake`, it does not read the byte from the socket, because
    /// the listening thread has read it.
    fn wake_waiting(&self, py: Python<'_>) -> PyResult<()> {
        let ready = self.bell.take();
        let woken: Vec<_> = {
            let mut waiting = lock(&self.waiting);
            ready.iter().filter_map(|operation| waiting.remove(operation)).collect()
        };
        for future in woken {
            let future = future.bind(py);
            if !future.call_method0(intern!(py, "done"))?.is_truthy()? {
                future.call_method1(intern!(py, "set_result"), (py.None(),))?;
            }
        }
        Ok(())
    }

    /// Fails all pending operations with an exception, because nothing will wake them.
    fn fail(&self, py: Python<'_>, error: &Bound<'_, PyAny>) -> PyResult<()> {
        let waiting = std::mem::take(&mut *lock(&self.waiting));
        for future in waiting.into_values() {
            let future = future.bind(py);
            if !future.call_method0(intern!(py, "done"))?.is_truthy()? {
                future.call_method1(intern!(py, "set_exception"), (error,))?;
            }
        }
        Ok(())
    }

    /// Returns an object on which a thread can wait, for event loops that cannot watch sockets.
    fn watch(&self) -> Watch {
        Watch(Arc::clone(&self.listener))
    }

    /// Returns the number of pending operations.
    fn waiting(&self) -> usize {
        lock(&self.waiting).len()
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        let Ok(waiting) = self.waiting.try_lock() else { return Ok(()) };
        waiting.values().try_for_each(|future| visit.call(future))
    }

    fn __clear__(&self) {
        let waiting = std::mem::take(&mut *lock(&self.waiting));
        drop(waiting);
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        // In a forked process, the listening thread exists only in the parent.
        if !runtime::is_orphaned() {
            self.bell.end();
        }
    }
}

/// Lets a separate thread wait for the bell of a bridge.
#[pyclass(frozen, module = "rakwire._native")]
#[derive(Debug)]
pub(crate) struct Watch(Arc<Listener>);

#[pymethods]
impl Watch {
    /// Waits at most `seconds`. Returns false once the bridge was dropped.
    fn wait(&self, py: Python<'_>, seconds: f64) -> PyResult<bool> {
        let time = Duration::try_from_secs_f64(seconds).map_err(errors::value)?;
        py.detach(|| self.0.wait(time)).map_err(|error| errors::system(&error))
    }
}

/// A future of the driver. It can be awaited once.
#[pyclass(frozen, module = "rakwire._native")]
pub(crate) struct Operation {
    work: Mutex<Option<Owned<Work>>>,
    /// The bridge in which the operation is pending, and the number of the operation in it.
    place: Mutex<Option<(Py<Bridge>, u64)>>,
}

impl Operation {
    /// Creates an operation from a future. `finish` converts its result.
    pub(crate) fn new<T: Send + 'static>(
        future: impl Future<Output = T> + Send + 'static,
        finish: impl FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> Self {
        let work: Work = Box::pin(async move {
            let result = future.await;
            let finish: Finish = Box::new(move |py| finish(py, result));
            finish
        });
        Self { work: Mutex::new(Some(Owned::new(work))), place: Mutex::default() }
    }

    /// Polls the future in the driver's runtime, without holding the GIL.
    fn poll(&self, py: Python<'_>, waker: &Waker) -> PyResult<Poll<Finish>> {
        let handle = runtime::handle(py)?;
        let mut work = lock(&self.work).take().ok_or_else(awaited_twice)?;
        let polled = py.detach(|| {
            let _context = handle.enter();
            let future = work.get_mut()?;
            match future.as_mut().poll(&mut Context::from_waker(waker)) {
                Poll::Ready(finish) => {
                    // Dropped without the GIL, because dropping may take a lock of the driver.
                    drop(work);
                    Some(Poll::Ready(finish))
                }
                Poll::Pending => {
                    *lock(&self.work) = Some(work);
                    Some(Poll::Pending)
                }
            }
        });
        polled.ok_or_else(awaited_twice)
    }

    /// Removes the operation from the bridge.
    fn leave(&self) {
        if let Some((bridge, number)) = lock(&self.place).take() {
            let removed = lock(&bridge.get().waiting).remove(&number);
            drop(removed);
        }
    }
}

fn awaited_twice() -> PyErr {
    PyRuntimeError::new_err("this operation was already awaited; call the method again")
}

/// Returns the bridge of the running loop, and a new future of the loop.
fn enter_loop(py: Python<'_>) -> PyResult<(Py<Bridge>, Bound<'_, PyAny>)> {
    static ENTER: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let enter =
        ENTER.get_or_try_init(py, || py.import("rakwire._loop")?.getattr("enter").map(Bound::unbind))?;
    enter.bind(py).call0()?.extract()
}

#[pymethods]
impl Operation {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        let Ok(place) = self.place.try_lock() else { return Ok(()) };
        place.iter().try_for_each(|(bridge, _)| visit.call(bridge))
    }

    fn __clear__(&self) {
        self.leave();
    }

    fn __await__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.leave();
        let (bridge, future) = enter_loop(py)?;
        let number = bridge.get().next.fetch_add(1, Ordering::Relaxed);
        let waker = Waker::from(Alarm::new(Arc::clone(&bridge.get().bell), number));
        lock(&bridge.get().waiting).insert(number, future.clone().unbind());
        *lock(&self.place) = Some((bridge, number));
        match self.poll(py, &waker) {
            Ok(Poll::Pending) => {
                // asyncio requires this mark on a future that a coroutine yields to its task.
                future.setattr(intern!(py, "_asyncio_future_blocking"), true)?;
                Ok(future)
            }
            Ok(Poll::Ready(finish)) => {
                self.leave();
                Err(PyStopIteration::new_err((finish(py)?,)))
            }
            Err(error) => {
                self.leave();
                Err(error)
            }
        }
    }
}

impl Drop for Operation {
    fn drop(&mut self) {
        // Operations may be dropped while the interpreter is shutting down.
        Python::try_attach(|_| self.leave());
    }
}
