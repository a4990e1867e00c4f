//! The endpoints of a process by handle.
//!
//! Each endpoint is stored in the thread that opened it. Calls therefore need no lock, and no two threads use the same
//! endpoint. A table of all handles distinguishes a wrong thread from an invalid handle.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use crate::codes::{Failure, Outcome, RAKWIRE_ERROR_FULL, RAKWIRE_ERROR_HANDLE, RAKWIRE_ERROR_THREAD};
use crate::endpoint::Endpoint;

/// The upper bits of each handle, so that a small number is never a valid handle by accident. Below them is a number
/// that is never reused. The low 16 bits are the slot of the endpoint in its thread.
const MARK: u64 = 0x5200_0000_0000_0000;

static NEXT: AtomicU64 = AtomicU64::new(1);
static OWNERS: Mutex<Option<HashMap<u64, ThreadId>>> = Mutex::new(None);

fn owners() -> MutexGuard<'static, Option<HashMap<u64, ThreadId>>> {
    OWNERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The endpoints of this thread, each with its handle.
#[derive(Default)]
struct Local(Vec<Option<(u64, Box<Endpoint>)>>);

impl Local {
    fn slot(&mut self, handle: u64) -> Option<&mut Option<(u64, Box<Endpoint>)>> {
        let slot = self.0.get_mut(usize::from(handle as u16))?;
        slot.as_ref().is_some_and(|(known, _)| *known == handle).then_some(slot)
    }
}

/// Closes the endpoints of a thread when the thread ends.
impl Drop for Local {
    fn drop(&mut self) {
        if let Some(owners) = &mut *owners() {
            for (handle, _) in self.0.iter().flatten() {
                owners.remove(handle);
            }
        }
    }
}

thread_local! {
    static LOCAL: RefCell<Local> = const { RefCell::new(Local(Vec::new())) };
}

fn with_local<T>(body: impl FnOnce(&mut Local) -> Outcome<T>) -> Outcome<T> {
    let called = LOCAL.try_with(|local| match local.try_borrow_mut() {
        Ok(mut local) => body(&mut local),
        Err(_) => Err(Failure::reentrant()),
    });
    called.unwrap_or(Err(Failure::new(RAKWIRE_ERROR_THREAD)))
}

/// Stores an endpoint, which then belongs to this thread, and returns its handle.
pub(crate) fn insert(endpoint: Endpoint) -> Outcome<u64> {
    with_local(|local| {
        let free = local.0.iter().position(Option::is_none).unwrap_or(local.0.len());
        let place = u16::try_from(free).map_err(|_| Failure::new(RAKWIRE_ERROR_FULL))?;
        if free == local.0.len() {
            local.0.push(None);
        }
        let handle = MARK | NEXT.fetch_add(1, Ordering::Relaxed) << 16 | u64::from(place);
        local.0[free] = Some((handle, Box::new(endpoint)));
        owners().get_or_insert_default().insert(handle, thread::current().id());
        Ok(handle)
    })
}

/// Returns the failure for a handle that this thread does not have: the wrong thread, or an invalid handle.
#[cold]
fn missing(handle: u64) -> Failure {
    let is_elsewhere = owners().as_ref().is_some_and(|owners| owners.contains_key(&handle));
    Failure::new(if is_elsewhere { RAKWIRE_ERROR_THREAD } else { RAKWIRE_ERROR_HANDLE })
}

/// Calls `body` with the endpoint of a handle.
pub(crate) fn with<T>(handle: u64, body: impl FnOnce(&mut Endpoint) -> Outcome<T>) -> Outcome<T> {
    with_local(|local| match local.slot(handle) {
        Some(Some((_, endpoint))) => body(endpoint),
        _ => Err(missing(handle)),
    })
}

/// Removes and returns an endpoint.
pub(crate) fn remove(handle: u64) -> Outcome<Box<Endpoint>> {
    with_local(|local| {
        let (_, endpoint) = local.slot(handle).and_then(Option::take).ok_or_else(|| missing(handle))?;
        if let Some(owners) = &mut *owners() {
            owners.remove(&handle);
        }
        Ok(endpoint)
    })
}
