//! The hook of an endpoint, hooks shared with the application, and detection of deadlocks between the two.
//!
//! A hook runs while its endpoint is locked, and [`SharedHook::with`](crate::endpoint::SharedHook::with) locks a hook
//! that the endpoint needs. Using the endpoint inside either would deadlock, and the process would hang silently. Such
//! a use panics instead. It panics every time, not only if two threads happen to wait for each other.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rakwire::endpoint::{
    ConnectionId, Event, Hook, Injected, MessageIds, MessageSender, Outcome, Peer, Plugin, Protocol, Receipt,
    Side, Verdict,
};
use rakwire::{Chunks, Instant};
use tokio::sync::Notify;

use super::wakes::retry;

/// The hook chosen at run time, if there is one.
///
/// A panic in a hook method ends neither the task nor the endpoint, because that would disconnect all players. The
/// panic is counted, and the item that the method was called for is dropped.
pub(crate) struct BoxedHook<P>(Option<Chosen<P>>);

struct Chosen<P> {
    id: HookId,
    hook: Box<dyn Hook<P> + Send>,
    panics: Cell<u64>,
    /// The last `update` panicked. The next call waits for another event, so that the driver does not repeat it in a
    /// busy loop.
    is_update_faulty: bool,
}

impl<P> Chosen<P> {
    fn call<R>(&mut self, method: impl FnOnce(&mut dyn Hook<P>) -> R) -> Option<R> {
        let scope = HookScope::of_method(self.id);
        let result = catch_unwind(AssertUnwindSafe(|| method(self.hook.as_mut())));
        drop(scope);
        match result {
            Ok(result) => Some(result),
            // This panic reports a forbidden call to the closure of the application, so it is passed on.
            Err(panic) if is_inside_with() => resume_unwind(panic),
            Err(_) => {
                self.panics.update(|panics| panics + 1);
                None
            }
        }
    }

    /// Calls a method that does not change the hook.
    fn read<R>(&self, method: impl FnOnce(&dyn Hook<P>) -> R) -> Option<R> {
        let _scope = HookScope::of_method(self.id);
        let result = catch_unwind(AssertUnwindSafe(|| method(self.hook.as_ref())));
        self.panics.update(|panics| panics + u64::from(result.is_err()));
        result.ok()
    }
}

impl<P: Protocol> BoxedHook<P> {
    pub(crate) const NONE: Self = Self(None);

    pub(crate) fn new(hook: impl Hook<P> + Send + 'static) -> Self {
        let (id, hook) = (HookId::new(), Box::new(hook));
        Self(Some(Chosen { id, hook, panics: Cell::new(0), is_update_faulty: false }))
    }

    /// Returns the id by which a use of the endpoint inside its hook is detected.
    pub(crate) fn id(&self) -> Option<HookId> {
        self.0.as_ref().map(|running| running.id)
    }

    pub(crate) const fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// Returns the number of methods that panicked.
    pub(crate) fn panics(&self) -> u64 {
        self.0.as_ref().map_or(0, |running| running.panics.get())
    }

    fn call(&mut self, method: impl FnOnce(&mut dyn Hook<P>) -> Verdict) -> Verdict {
        match &mut self.0 {
            Some(running) => running.call(method).unwrap_or(Verdict::Drop),
            None => Verdict::Pass,
        }
    }
}

impl<P> fmt::Debug for BoxedHook<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "BoxedHook" } else { "BoxedHook(None)" })
    }
}

impl<P: Protocol> Hook<P> for BoxedHook<P> {
    fn on_received(&mut self, now: Instant, from: SocketAddr, datagram: &[u8]) -> Verdict {
        self.call(|hook| hook.on_received(now, from, datagram))
    }

    fn on_transmit(&mut self, now: Instant, to: SocketAddr, datagram: &[u8]) -> Verdict {
        self.call(|hook| hook.on_transmit(now, to, datagram))
    }

    fn on_event(&mut self, now: Instant, event: &Event<'_, P>) -> Verdict {
        self.call(|hook| hook.on_event(now, event))
    }

    fn inject(&mut self, of: Option<ConnectionId>, take: &mut dyn FnMut(Injected<'_, P>) -> bool) {
        if let Some(running) = &mut self.0 {
            // `take` runs inside the hook, and uses no endpoint.
            running.call(|hook| hook.inject(of, take));
        }
    }

    fn watches_events(&self) -> bool {
        // A hook that panics here may be a filter, so it has to see all events.
        self.0.as_ref().is_some_and(|running| running.read(|hook| hook.watches_events()).unwrap_or(true))
    }

    fn on_send(&mut self, now: Instant, id: ConnectionId, message: &[u8], delivery: P::Delivery) -> Verdict {
        self.call(|hook| hook.on_send(now, id, message, delivery))
    }

    fn update(&mut self, now: Instant, peer: &mut Peer<'_, P>) {
        if let Some(running) = &mut self.0 {
            running.is_update_faulty = running.call(|hook| hook.update(now, peer)).is_none();
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let running = self.0.as_ref().filter(|running| !running.is_update_faulty)?;
        running.read(|hook| hook.poll_timeout()).flatten()
    }
}

/// A hook or a plugin shared by the endpoint and the application. Clones refer to the same hook.
///
/// ```
/// use rakwire_native::endpoint::SharedHook;
/// use rakwire_native::raknet::{Delivery, Endpoint, FilterGroup, MessageFilter, Options};
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let filter = SharedHook::new(MessageFilter::<64>::new());
/// let (options, hook) = (Options::server(64)?, filter.clone());
/// let server = Endpoint::bind_with_hook("127.0.0.1:0", options, |_| hook).await?;
/// // Later: connections in no other group may only log in.
/// filter.with(|filter| {
///     filter.deny_all(FilterGroup::DEFAULT);
///     filter.allow(FilterGroup::DEFAULT, [0x86]);
/// });
///
/// let client = Endpoint::bind("127.0.0.1:0", Options::client()?).await?;
/// let here = client.connect(server.local_addr()).await?;
/// let there = server.accept().await.ok_or("the server is closed")?;
/// here.send(b"\x90move", Delivery::RELIABLE_ORDERED).await?;
/// here.send(b"\x86name", Delivery::RELIABLE_ORDERED).await?;
/// assert_eq!(there.recv().await.ok_or("the client is gone")?.bytes, b"\x86name");
/// // The player has logged in.
/// filter.with(|filter| filter.set_group(there.id(), FilterGroup(1)));
/// here.send(b"\x90move", Delivery::RELIABLE_ORDERED).await?;
/// assert_eq!(there.recv().await.ok_or("the client is gone")?.bytes, b"\x90move");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct SharedHook<H>(Arc<Inner<H>>);

/// The state that the clones share.
#[derive(Debug, Default)]
struct Inner<H> {
    hook: Mutex<H>,
    /// Notified when the hook may have changed.
    changed: Notify,
}

impl<H> SharedHook<H> {
    /// Creates a shared hook.
    #[must_use]
    pub fn new(hook: H) -> Self {
        Self(Arc::new(Inner { hook: Mutex::new(hook), changed: Notify::new() }))
    }

    /// Reads or changes the hook or plugin.
    ///
    /// [`Endpoint::wake`](crate::endpoint::Endpoint::wake) makes the endpoint send messages that the change has queued.
    /// The endpoint is blocked while the closure runs, so keep it short. The closure may drop handles of endpoints and
    /// connections, but must not use them.
    ///
    /// # Panics
    /// If the closure uses an endpoint, a connection or this hook: that would deadlock.
    #[track_caller]
    pub fn with<R>(&self, change: impl FnOnce(&mut H) -> R) -> R {
        let mut hook = self.lock();
        let scope = HookScope::of_with(&*self.0);
        let result = change(&mut hook);
        drop((scope, hook));
        self.0.changed.notify_waiters();
        result
    }

    /// Waits until `poll` returns a value, such as the next event of a plugin.
    ///
    /// `poll` is called immediately, and again whenever the endpoint or [`with`](Self::with) may have changed the hook,
    /// so no timer is needed. If the future is dropped, nothing is taken.
    ///
    /// ```
    /// use rakwire_native::Instant;
    /// use rakwire_native::endpoint::{Hook, Protocol, SharedHook, Verdict};
    /// use rakwire_native::{Endpoint, Options};
    ///
    /// /// Counts datagrams.
    /// #[derive(Default)]
    /// struct Counter(u32);
    ///
    /// impl<P: Protocol> Hook<P> for Counter {
    ///     fn on_received(&mut self, _: Instant, _: std::net::SocketAddr, _: &[u8]) -> Verdict {
    ///         self.0 += 1;
    ///         Verdict::Pass
    ///     }
    /// }
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let counter = SharedHook::new(Counter::default());
    /// let (options, hook) = (Options::server(8)?, counter.clone());
    /// let server = Endpoint::bind_with_hook("127.0.0.1:0", options, |_| hook).await?;
    /// let client = Endpoint::bind("127.0.0.1:0", Options::client()?).await?;
    /// client.connect(server.local_addr()).await?;
    /// let count = counter.next(|counter| (counter.0 > 2).then_some(counter.0)).await;
    /// assert!(count > 2);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn next<R>(&self, mut poll: impl FnMut(&mut H) -> Option<R>) -> R {
        let attempt = || {
            let mut hook = self.lock();
            let _scope = HookScope::of_with(&*self.0);
            poll(&mut hook)
        };
        retry(&self.0.changed, attempt).await
    }

    /// Runs a call of the endpoint that may change the hook, and then notifies the tasks that wait for a change.
    fn used<R>(&self, act: impl FnOnce(&mut H) -> R) -> R {
        let mut hook = self.lock();
        let scope = HookScope::of_shared_method(&*self.0);
        let result = act(&mut hook);
        drop((scope, hook));
        self.0.changed.notify_waiters();
        result
    }

    /// Runs a call of the endpoint that does not change the hook.
    fn seen<R>(&self, look: impl FnOnce(&H) -> R) -> R {
        let hook = self.lock();
        let _scope = HookScope::of_shared_method(&*self.0);
        look(&hook)
    }

    /// Locks the hook. A hook that panicked stays in use: its decisions are no worse than before.
    #[track_caller]
    fn lock(&self) -> MutexGuard<'_, H> {
        check_with(&*self.0);
        self.0.hook.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<H> Clone for SharedHook<H> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<P: Protocol, H: Hook<P>> Hook<P> for SharedHook<H> {
    fn on_received(&mut self, now: Instant, from: SocketAddr, datagram: &[u8]) -> Verdict {
        self.used(|hook| hook.on_received(now, from, datagram))
    }

    fn on_transmit(&mut self, now: Instant, to: SocketAddr, datagram: &[u8]) -> Verdict {
        self.used(|hook| hook.on_transmit(now, to, datagram))
    }

    fn on_event(&mut self, now: Instant, event: &Event<'_, P>) -> Verdict {
        self.used(|hook| hook.on_event(now, event))
    }

    fn inject(&mut self, of: Option<ConnectionId>, take: &mut dyn FnMut(Injected<'_, P>) -> bool) {
        self.used(|hook| hook.inject(of, take));
    }

    fn watches_events(&self) -> bool {
        self.seen(|hook| hook.watches_events())
    }

    fn on_send(&mut self, now: Instant, id: ConnectionId, message: &[u8], delivery: P::Delivery) -> Verdict {
        self.used(|hook| hook.on_send(now, id, message, delivery))
    }

    fn update(&mut self, now: Instant, peer: &mut Peer<'_, P>) {
        self.used(|hook| hook.update(now, peer));
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.seen(|hook| hook.poll_timeout())
    }
}

impl<P: Protocol, T: Plugin<P>> Plugin<P> for SharedHook<T> {
    fn message_ids(&self) -> MessageIds {
        self.seen(|hook| hook.message_ids())
    }

    fn watches_all(&self) -> bool {
        self.seen(|hook| hook.watches_all())
    }

    fn on_connected(
        &mut self,
        now: Instant,
        id: ConnectionId,
        remote: SocketAddr,
        identity: P::Identity,
        side: Side,
    ) {
        self.used(|hook| hook.on_connected(now, id, remote, identity, side));
    }

    fn on_disconnected(&mut self, now: Instant, id: ConnectionId, reason: P::DisconnectReason) {
        self.used(|hook| hook.on_disconnected(now, id, reason));
    }

    fn on_message(
        &mut self,
        now: Instant,
        id: ConnectionId,
        delivery: P::Delivery,
        message: &dyn Chunks,
    ) -> Verdict {
        self.used(|hook| hook.on_message(now, id, delivery, message))
    }

    fn on_send(&mut self, now: Instant, id: ConnectionId, message: &[u8], delivery: P::Delivery) -> Verdict {
        self.used(|hook| hook.on_send(now, id, message, delivery))
    }

    fn inject(&mut self, of: Option<ConnectionId>, take: &mut dyn FnMut(Injected<'_, P>) -> bool) {
        self.used(|hook| hook.inject(of, take));
    }

    fn on_receipt(&mut self, now: Instant, id: ConnectionId, receipt: Receipt, outcome: Outcome) -> Verdict {
        self.used(|hook| hook.on_receipt(now, id, receipt, outcome))
    }

    fn on_out_of_band(
        &mut self,
        now: Instant,
        from: SocketAddr,
        identity: P::Identity,
        data: &dyn Chunks,
    ) -> Verdict {
        self.used(|hook| hook.on_out_of_band(now, from, identity, data))
    }

    fn update(&mut self, now: Instant, sender: &mut dyn MessageSender<P>) {
        self.used(|hook| hook.update(now, sender));
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.seen(|hook| hook.poll_timeout())
    }
}

thread_local! {
    /// Empty in a thread that runs no hook, so that locking an endpoint costs one check.
    static RUNNING: RefCell<Vec<Running>> = const { RefCell::new(Vec::new()) };
}

/// Identifies the hook of one endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HookId(usize);

impl HookId {
    /// Returns an id that is unique in the process.
    fn new() -> Self {
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

/// Marks the thread as running such code until it is dropped.
#[must_use]
struct HookScope(());

impl HookScope {
    fn enter(running: Running) -> Self {
        change(|all| all.push(running));
        Self(())
    }

    /// Enters the closure of `SharedHook::with` on `lock`.
    fn of_with<T>(lock: &T) -> Self {
        Self::enter(Running::With(address(lock)))
    }

    /// Enters a method of the shared hook behind `lock`.
    fn of_shared_method<T>(lock: &T) -> Self {
        Self::enter(Running::SharedMethod(address(lock)))
    }

    /// Enters a method of the hook of an endpoint.
    fn of_method(hook: HookId) -> Self {
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

/// Changes the list. A thread that exits may drop handles after its list is gone, but then it runs no hook.
fn change(change: impl FnOnce(&mut Vec<Running>)) {
    let _ = RUNNING.try_with(|all| change(&mut all.borrow_mut()));
}

fn is_running(is_meant: impl FnMut(&Running) -> bool) -> bool {
    RUNNING.try_with(|all| all.borrow().iter().any(is_meant)).unwrap_or(false)
}

/// Returns true if locking the endpoint with this hook would deadlock, because this thread is running one of its hooks.
pub(crate) fn forbids(hook: Option<HookId>) -> bool {
    is_running(|running| match running {
        Running::With(_) => true,
        Running::Method(of) => Some(*of) == hook,
        // A method of a shared hook runs inside `Method`, or for an endpoint that needs no lock.
        Running::SharedMethod(_) => false,
    })
}

/// Returns true inside the closure of a `SharedHook::with`.
fn is_inside_with() -> bool {
    is_running(|running| matches!(running, Running::With(_)))
}

/// Panics if locking the endpoint with this hook would deadlock here.
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
fn check_with<T>(lock: &T) {
    let at = address(lock);
    assert!(
        !is_running(|running| [Running::With(at), Running::SharedMethod(at)].contains(running)),
        "a hook is used inside its own `SharedHook::with` or inside one of its methods: it would wait for itself; use it after \
         the closure or the method has returned"
    );
}
