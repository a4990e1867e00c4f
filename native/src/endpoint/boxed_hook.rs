//! The hook of an endpoint, if it has one.

use std::cell::Cell;
use std::fmt;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use rakwire::Instant;
use rakwire::endpoint::{ConnectionId, Event, Hook, Injected, Peer, Protocol, Verdict};

use crate::hook_scope::{self, HookId, HookScope};

/// A hook that is chosen at run time, or none.
///
/// A method that panics ends neither the task that runs it nor the endpoint, whose other players would wait for ever: the panic is
/// counted, and what the method was asked about is dropped, as a filter that cannot decide should.
pub(crate) struct BoxedHook<P>(Option<Running<P>>);

struct Running<P> {
    id: HookId,
    hook: Box<dyn Hook<P> + Send>,
    panics: Cell<u64>,
    /// The last `update` panicked. The next one is not before something else happens, so that the driver does not repeat it
    /// without a pause.
    is_update_faulty: bool,
}

impl<P> Running<P> {
    fn call<R>(&mut self, method: impl FnOnce(&mut dyn Hook<P>) -> R) -> Option<R> {
        let scope = HookScope::of_method(self.id);
        let result = catch_unwind(AssertUnwindSafe(|| method(self.hook.as_mut())));
        drop(scope);
        match result {
            Ok(result) => Some(result),
            // The application has this call inside of its closure, and has to learn that it must not.
            Err(panic) if hook_scope::is_inside_with() => resume_unwind(panic),
            Err(_) => {
                self.panics.update(|panics| panics + 1);
                None
            }
        }
    }

    /// A method that changes nothing.
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
        Self(Some(Running { id, hook, panics: Cell::new(0), is_update_faulty: false }))
    }

    /// The name by which a use of its endpoint inside of it is noticed.
    pub(crate) fn id(&self) -> Option<HookId> {
        self.0.as_ref().map(|running| running.id)
    }

    pub(crate) const fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// Methods that panicked.
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
            // `take` runs inside of the hook, and uses no endpoint.
            running.call(|hook| hook.inject(of, take));
        }
    }

    fn watches_events(&self) -> bool {
        // A hook that panics here may be a filter.
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
