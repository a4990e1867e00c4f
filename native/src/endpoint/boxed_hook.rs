//! The hook of an endpoint, if it has one.

use std::fmt;
use std::net::SocketAddr;

use rakwire::Instant;
use rakwire::endpoint::{ConnectionId, Event, Hook, Injected, Peer, Protocol, Verdict};

use crate::hook_scope::{HookId, HookScope};

/// A hook that is chosen at run time, or none.
pub(crate) struct BoxedHook<P>(Option<(HookId, Box<dyn Hook<P> + Send>)>);

impl<P: Protocol> BoxedHook<P> {
    pub(crate) const NONE: Self = Self(None);

    pub(crate) fn new(hook: impl Hook<P> + Send + 'static) -> Self {
        Self(Some((HookId::new(), Box::new(hook))))
    }

    /// The name by which a use of its endpoint inside of it is noticed.
    pub(crate) fn id(&self) -> Option<HookId> {
        self.0.as_ref().map(|(id, _)| *id)
    }

    pub(crate) const fn is_none(&self) -> bool {
        self.0.is_none()
    }

    fn call(&mut self, method: impl FnOnce(&mut dyn Hook<P>) -> Verdict) -> Verdict {
        match &mut self.0 {
            Some((id, hook)) => {
                let _scope = HookScope::of_method(*id);
                method(hook.as_mut())
            }
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
        if let Some((id, hook)) = &mut self.0 {
            // `take` runs inside of the hook, and uses no endpoint.
            let _scope = HookScope::of_method(*id);
            hook.inject(of, take);
        }
    }

    fn watches_events(&self) -> bool {
        self.0.as_ref().is_some_and(|(_, hook)| hook.watches_events())
    }

    fn on_send(&mut self, now: Instant, id: ConnectionId, message: &[u8], delivery: P::Delivery) -> Verdict {
        self.call(|hook| hook.on_send(now, id, message, delivery))
    }

    fn update(&mut self, now: Instant, peer: &mut Peer<'_, P>) {
        if let Some((id, hook)) = &mut self.0 {
            let _scope = HookScope::of_method(*id);
            hook.update(now, peer);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.0.as_ref()?.1.poll_timeout()
    }
}
