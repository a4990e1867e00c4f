//! Bytes that a peer lends.

use crate::protocol::Protocol;
use crate::shared::Shared;

/// Bytes that the peer lends; dropping it gives them back.
#[derive(Debug)]
pub(crate) struct Loan<'d, P: Protocol> {
    shared: &'d Shared<'d, P>,
}

impl<'d, P: Protocol> Loan<'d, P> {
    pub(crate) const fn new(shared: &'d Shared<'d, P>) -> Self {
        Self { shared }
    }

    /// Looks at the peer, which tells the bytes.
    pub(crate) fn look<R>(&self, look: impl FnOnce(&P::Peer<'d>) -> R) -> R {
        self.shared.look(|inner| look(&inner.peer))
    }
}

impl<P: Protocol> Drop for Loan<'_, P> {
    fn drop(&mut self) {
        self.shared.give_back();
    }
}
