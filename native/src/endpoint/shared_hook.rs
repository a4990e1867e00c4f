//! A hook or a plugin that an application can reach while its endpoint runs.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rakwire::endpoint::{
    ConnectionId, Event, Hook, Injected, MessageIds, MessageSender, Outcome, Peer, Plugin, Protocol, Receipt,
    Side, Verdict,
};
use rakwire::{Chunks, Instant};

use tokio::sync::Notify;

use super::shared::retry;
use crate::hook_scope::{self, HookScope};

/// A hook or a plugin that the endpoint and the application share. Clones refer to the same one.
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
/// // Later: whoever is in no other group may only log in.
/// filter.with(|filter| {
///     filter.forbid_all(FilterGroup::EVERYONE);
///     filter.allow(FilterGroup::EVERYONE, [0x86]);
/// });
///
/// let client = Endpoint::bind("127.0.0.1:0", Options::client()?).await?;
/// let here = client.connect(server.local_addr()).await?;
/// let there = server.accept().await.ok_or("the server is closed")?;
/// here.send(b"\x90move", Delivery::RELIABLE_ORDERED).await?;
/// here.send(b"\x86name", Delivery::RELIABLE_ORDERED).await?;
/// assert_eq!(there.recv().await.ok_or("the client is gone")?.bytes, b"\x86name");
/// // The player has logged in.
/// filter.with(|filter| filter.put(there.id(), FilterGroup(1)));
/// here.send(b"\x90move", Delivery::RELIABLE_ORDERED).await?;
/// assert_eq!(there.recv().await.ok_or("the client is gone")?.bytes, b"\x90move");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct SharedHook<H>(Arc<Inner<H>>);

/// What the clones share.
#[derive(Debug, Default)]
struct Inner<H> {
    hook: Mutex<H>,
    /// Notified when the hook may have changed.
    changed: Notify,
}

impl<H> SharedHook<H> {
    /// Makes a hook shared.
    #[must_use]
    pub fn new(hook: H) -> Self {
        Self(Arc::new(Inner { hook: Mutex::new(hook), changed: Notify::new() }))
    }

    /// Reads or changes the hook or plugin; [`Endpoint::wake`](crate::endpoint::Endpoint::wake) has the endpoint send at once
    /// what that made it want to send. The endpoint waits meanwhile, so the closure must be short. Handles of endpoints and
    /// connections may be dropped in it, but not used.
    ///
    /// # Panics
    /// When the closure uses an endpoint, a connection or this hook: they would wait for the closure, and the closure for them.
    #[track_caller]
    pub fn with<R>(&self, change: impl FnOnce(&mut H) -> R) -> R {
        let mut hook = self.lock();
        let scope = HookScope::of_with(&*self.0);
        let result = change(&mut hook);
        drop((scope, hook));
        self.0.changed.notify_waiters();
        result
    }

    /// Waits until `poll` returns something, such as the next event of a plugin. It is asked at once and whenever the endpoint or
    /// [`with`](Self::with) may have changed the hook, so that a program needs no timer to look for news. If the future is dropped,
    /// nothing is taken.
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

    /// Lets the endpoint use the hook, after which tasks that wait for it look again.
    fn used<R>(&self, act: impl FnOnce(&mut H) -> R) -> R {
        let mut hook = self.lock();
        let scope = HookScope::of_shared_method(&*self.0);
        let result = act(&mut hook);
        drop((scope, hook));
        self.0.changed.notify_waiters();
        result
    }

    /// Lets the endpoint look at the hook.
    fn seen<R>(&self, look: impl FnOnce(&H) -> R) -> R {
        let hook = self.lock();
        let _scope = HookScope::of_shared_method(&*self.0);
        look(&hook)
    }

    /// A hook that panicked is used on: what it decides is no worse than before.
    #[track_caller]
    fn lock(&self) -> MutexGuard<'_, H> {
        hook_scope::check_with(&*self.0);
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
