//! Counted references to a connection.

use core::future::poll_fn;
use core::task::Poll;

use rakwire::Instant;
use rakwire::endpoint::{ConnectionId, Hook, Hooked, Protocol};

use crate::shared::{EventInfo, Shared};
use crate::slots::Phase;

/// A reference to a connection. Dropping the last reference closes the connection.
#[derive(Debug)]
pub(crate) struct ConnectionRef<'d, P: Protocol, H: Hook<P>> {
    shared: &'d Shared<'d, P, H>,
    slot: usize,
}

impl<P: Protocol, H: Hook<P>> Clone for ConnectionRef<'_, P, H> {
    fn clone(&self) -> Self {
        self.shared.update(|inner, _| inner.slots.retain(self.slot));
        Self { shared: self.shared, slot: self.slot }
    }
}

impl<P: Protocol, H: Hook<P>> Drop for ConnectionRef<'_, P, H> {
    fn drop(&mut self) {
        self.shared.update(|inner, now| inner.release(now, self.slot));
    }
}

impl<'d, P: Protocol, H: Hook<P>> ConnectionRef<'d, P, H> {
    /// Creates a reference that the slot has already counted.
    pub(crate) const fn new(shared: &'d Shared<'d, P, H>, slot: usize) -> Self {
        Self { shared, slot }
    }

    pub(crate) const fn shared(&self) -> &'d Shared<'d, P, H> {
        self.shared
    }

    /// Waits until the connection is open, and returns the identity of the remote peer.
    pub(crate) async fn connected(&self) -> Result<P::Identity, P::ConnectFailure> {
        poll_fn(|cx| self.shared.poll(cx, |inner, _| inner.poll_connected(self.slot))).await
    }

    /// Waits until `attempt` returns `Poll::Ready`. It is called with the peer, the time and the id of the connection.
    pub(crate) async fn wait<R>(
        &self,
        mut attempt: impl FnMut(&mut Hooked<'d, P, H>, Instant, Option<ConnectionId>) -> Poll<R>,
    ) -> R {
        poll_fn(|cx| {
            self.shared.poll(cx, |inner, now| {
                let id = inner.slots.get(self.slot).map(|slot| slot.id);
                attempt(&mut inner.hooked, now, id)
            })
        })
        .await
    }

    /// Calls `update` with the peer and the id of the connection.
    pub(crate) fn update<R>(
        &self,
        update: impl FnOnce(&mut Hooked<'d, P, H>, Instant, Option<ConnectionId>) -> R,
    ) -> R {
        self.shared.update(|inner, now| {
            let id = inner.slots.get(self.slot).map(|slot| slot.id);
            update(&mut inner.hooked, now, id)
        })
    }

    /// Waits for the next event. Returns `None` once the connection is closed and all events have been taken.
    pub(crate) async fn next(&self) -> Option<EventInfo<P>> {
        poll_fn(|cx| self.shared.poll(cx, |inner, _| inner.poll_event(self.slot))).await
    }

    /// Returns the next event, if there is one.
    pub(crate) fn try_next(&self) -> Option<EventInfo<P>> {
        match self.shared.update(|inner, _| inner.poll_event(self.slot)) {
            Poll::Ready(info) => info,
            Poll::Pending => None,
        }
    }

    pub(crate) fn closed_reason(&self) -> Option<P::DisconnectReason> {
        self.shared.read(|inner| match inner.slots.get(self.slot)?.phase {
            Phase::Ended(reason) => reason,
            Phase::Connecting | Phase::Incoming { .. } | Phase::Connected => None,
        })
    }

    pub(crate) fn id(&self) -> Option<ConnectionId> {
        self.shared.read(|inner| inner.slots.get(self.slot).map(|slot| slot.id))
    }

    pub(crate) fn stats(&self) -> Option<P::ConnectionStats> {
        self.shared.read(|inner| inner.hooked.peer.connection_stats(inner.slots.get(self.slot)?.id))
    }
}
