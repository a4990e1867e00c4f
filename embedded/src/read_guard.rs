//! A guard for bytes that a peer lends to a task.

use rakwire::endpoint::{Message, Protocol};

use crate::shared::Shared;

/// Bytes that the peer lends. Dropping the guard gives them back.
#[derive(Debug)]
pub(crate) struct ReadGuard<'d, P: Protocol> {
    shared: &'d Shared<'d, P>,
}

impl<'d, P: Protocol> ReadGuard<'d, P> {
    /// A guard for the bytes that the peer lends now.
    pub(crate) const fn new(shared: &'d Shared<'d, P>) -> Self {
        Self { shared }
    }

    pub(crate) fn read<R>(&self, read: impl FnOnce(Message<'_, P>) -> R) -> R {
        self.shared.read(|inner| read(inner.peer.lent()))
    }
}

impl<P: Protocol> Drop for ReadGuard<'_, P> {
    fn drop(&mut self) {
        self.shared.give_back();
    }
}
