//! The hooks and shared plugins that run in this thread.
//!
//! A hook runs while its endpoint is locked, and [`SharedHook::with`](crate::endpoint::SharedHook::with) locks a hook that the
//! endpoint needs. Code in either that used the endpoint would wait for itself, or for a thread that waits for it, so that
//! the process would stop without a word. Such a use panics here instead, each time and not only when the threads meet.

use std::cell::RefCell;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

thread_local! {
    /// Empty in a thread that runs no hook, so that a lock costs one look at it.
    static RUNNING: RefCell<Vec<Running>> = const { RefCell::new(Vec::new()) };
}

/// Names the hook of one endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HookId(usize);

impl HookId {
    /// Returns a name that no other hook of the process has.
    pub(crate) fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// Code that runs while a hook is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Running {
    /// The closure of `SharedHook::with`, with the address of the lock.
    With(usize),
    /// A method of the hook of an endpoint, which is locked meanwhile.
    Method(HookId),
    /// A method of a shared hook, with the address of its lock.
    SharedMethod(usize),
}

/// Lasts as long as the closure or the method.
#[must_use]
pub(crate) struct HookScope(());

impl HookScope {
    fn enter(running: Running) -> Self {
        change(|all| all.push(running));
        Self(())
    }

    /// Begins the closure of `SharedHook::with` on `lock`.
    pub(crate) fn of_with<T>(lock: &T) -> Self {
        Self::enter(Running::With(address(lock)))
    }

    /// Begins a method of the shared hook behind `lock`.
    pub(crate) fn of_shared_method<T>(lock: &T) -> Self {
        Self::enter(Running::SharedMethod(address(lock)))
    }

    /// Begins a method of the hook of an endpoint.
    pub(crate) fn of_method(hook: HookId) -> Self {
        Self::enter(Running::Method(hook))
    }
}

impl Drop for HookScope {
    fn drop(&mut self) {
        change(|all| _ = all.pop());
    }
}

fn address<T>(lock: &T) -> usize {
    ptr::from_ref(lock).addr()
}

/// A thread that ends may drop handles after its list is gone; it runs no hook then.
fn change(change: impl FnOnce(&mut Vec<Running>)) {
    let _ = RUNNING.try_with(|all| change(&mut all.borrow_mut()));
}

fn is_running(is_meant: impl FnMut(&Running) -> bool) -> bool {
    RUNNING.try_with(|all| all.borrow().iter().any(is_meant)).unwrap_or(false)
}

/// True where the lock of the endpoint with this hook must not be waited for.
pub(crate) fn forbids(hook: Option<HookId>) -> bool {
    is_running(|running| match running {
        Running::With(_) => true,
        Running::Method(of) => Some(*of) == hook,
        // It runs inside of `Method`, or for an endpoint that needs no lock.
        Running::SharedMethod(_) => false,
    })
}

/// True inside the closure of a `SharedHook::with`.
pub(crate) fn is_inside_with() -> bool {
    is_running(|running| matches!(running, Running::With(_)))
}

/// Panics where the lock of the endpoint with this hook must not be waited for.
#[track_caller]
pub(crate) fn check(hook: Option<HookId>) {
    assert!(
        !forbids(hook),
        "an endpoint or a connection is used inside `SharedHook::with` or inside a method of its own hook: it would wait for \
         itself; use it after the closure or the method has returned"
    );
}

/// Panics inside the closure of `SharedHook::with` on the same `lock`, and inside a method of the hook behind it.
#[track_caller]
pub(crate) fn check_with<T>(lock: &T) {
    let at = address(lock);
    assert!(
        !is_running(|running| [Running::With(at), Running::SharedMethod(at)].contains(running)),
        "a hook is used inside its own `SharedHook::with` or inside one of its methods: it would wait for itself; use it after \
         the closure or the method has returned"
    );
}
