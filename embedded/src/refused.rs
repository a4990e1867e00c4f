//! The queue of clients that a server has refused.

use heapless::Vec;
use rakwire::endpoint::RefusedClient;

/// The length of the queue; 0 without the feature `server`, because such a peer accepts no clients.
const KEPT: usize = if cfg!(feature = "server") { 4 } else { 0 };

/// Refused clients that no task has taken yet. A full queue drops the oldest one.
#[derive(Debug)]
pub(crate) struct RefusedClients<I>(Vec<RefusedClient<I>, KEPT>);

impl<I> RefusedClients<I> {
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    pub(crate) fn push(&mut self, client: RefusedClient<I>) {
        if KEPT > 0 {
            if self.0.is_full() {
                self.0.remove(0);
            }
            // This cannot fail: a full queue has dropped its oldest entry.
            let _ = self.0.push(client);
        }
    }

    /// Takes the client that was refused first.
    #[cfg(feature = "server")]
    pub(crate) fn pop(&mut self) -> Option<RefusedClient<I>> {
        if self.0.is_empty() { None } else { Some(self.0.remove(0)) }
    }
}
