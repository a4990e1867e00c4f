//! The endpoints of a process by handle.
//!
//! Each endpoint is stored in the thread that opened it. Calls therefore need no lock, and no two threads use the same
//! endpoint. A table of all handles distinguishes a wrong thread from an invalid handle.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use crate::codes::{Failure, Outcome, RAKWIRE_ERROR_BUG, RAKWIRE_ERROR_HANDLE, RAKWIRE_ERROR_THREAD};
use crate::endpoint::Endpoint;

/// The upper bits of each handle, so that a small number is never a valid handle by accident.
const MARK: u64 = 0x5257_4B00_0000_0000;

static NEXT: AtomicU64 = AtomicU64::new(1);
static OWNERS: Mutex<Option<HashMap<u64, ThreadId>>> = Mutex::new(None);

fn owners() -> MutexGuard<'static, Option<HashMap<u64, ThreadId>>> {
    OWNERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The endpoints of the current thread, in ascending order of their handles.
#[derive(Default)]
struct Local(Vec<(u64, Endpoint)>);

impl Local {
    fn find(&self, handle: u64) -> Option<usize> {
        self.0.binary_search_by_key(&handle, |(at, _)| *at).ok()
    }
}

/// Closes the endpoints of a thread when the thread ends.
impl Drop for Local {
    fn drop(&mut self) {
        if let Some(owners) = &mut *owners() {
            owners.retain(|handle, _| self.find(*handle).is_none());
        }
    }
}

thread_local! {
    static LOCAL: RefCell<Local> = const { RefCell::new(Local(Vec::new())) };
}

fn with_local<T>(body: impl FnOnce(&mut Local) -> Outcome<T>) -> Outcome<T> {
    let called = LOCAL.try_with(|local| match local.try_borrow_mut() {
        Ok(mut local) => body(&mut local),
        Err(_) => Err(Failure::with(
            RAKWIRE_ERROR_BUG,
            "the library was called while it was running, for example by a handler of a signal",
        )),
    });
    called.unwrap_or(Err(Failure::new(RAKWIRE_ERROR_THREAD)))
}

/// Stores an endpoint, which belongs to the current thread from then on.
pub(crate) fn insert(endpoint: Endpoint) -> Outcome<u64> {
    with_local(|local| {
        let handle = MARK | NEXT.fetch_add(1, Ordering::Relaxed);
        local.0.push((handle, endpoint));
        owners().get_or_insert_default().insert(handle, thread::current().id());
        Ok(handle)
    })
}

/// Returns the failure for a handle that the current thread does not have.
fn missing(handle: u64) -> Failure {
    let is_elsewhere = owners().as_ref().is_some_and(|owners| owners.contains_key(&handle));
    Failure::new(if is_elsewhere { RAKWIRE_ERROR_THREAD } else { RAKWIRE_ERROR_HANDLE })
}

/// Calls `body` with the endpoint of a handle.
pub(crate) fn with<T>(handle: u64, body: impl FnOnce(&mut Endpoint) -> Outcome<T>) -> Outcome<T> {
    with_local(|local| {
        let Some((_, endpoint)) = local.find(handle).and_then(|at| local.0.get_mut(at)) else {
            return Err(missing(handle));
        };
        body(endpoint)
    })
}

/// Removes and returns an endpoint.
pub(crate) fn remove(handle: u64) -> Outcome<Endpoint> {
    with_local(|local| {
        let at = local.find(handle).ok_or_else(|| missing(handle))?;
        if let Some(owners) = &mut *owners() {
            owners.remove(&handle);
        }
        Ok(local.0.remove(at).1)
    })
}
