//! A guard for bytes that a task borrows from a peer.

use rakwire::endpoint::{Hook, Message, Protocol};

use crate::shared::Shared;

/// Bytes borrowed from the peer. Dropping the guard returns them.
#[derive(Debug)]
pub(crate) struct ReadGuard<'d, P: Protocol, H: Hook<P>> {
    shared: &'d Shared<'d, P, H>,
}

impl<'d, P: Protocol, H: Hook<P>> ReadGuard<'d, P, H> {
    /// Creates a guard for the bytes that the peer is lending.
    pub(crate) const fn new(shared: &'d Shared<'d, P, H>) -> Self {
        Self { shared }
    }

    pub(crate) fn read<R>(&self, read: impl FnOnce(Message<'_, P>) -> R) -> R {
        self.shared.read(|inner| read(inner.hooked.peer.event_data()))
    }
}

impl<P: Protocol, H: Hook<P>> Drop for ReadGuard<'_, P, H> {
    fn drop(&mut self) {
        self.shared.release_event_data();
    }
}
