//! Clients that a server has refused by what they showed.

use std::collections::VecDeque;
use std::net::SocketAddr;

use rakwire::endpoint::RefuseReason;

/// The length of the queue.
const MAX_QUEUED: usize = 64;

/// A client that was refused by its password, its identity or its connect token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RefusedClient<I> {
    /// The address that the client says is its own. It is proven only where [`CookiePolicy::Required`](rakwire::raknet::CookiePolicy::Required)
    /// has it proven first: with other policies a forger can have any address refused, so it is no reason for a ban.
    pub remote: SocketAddr,
    /// The identity that the client claims: in RakNet its GUID.
    pub identity: I,
    /// Why it was refused.
    pub reason: RefuseReason,
}

/// Refused clients that the application has not asked for. A full queue drops the oldest one.
#[derive(Debug)]
pub(crate) struct RefusedClients<I> {
    waiting: VecDeque<RefusedClient<I>>,
    count: u64,
}

impl<I> Default for RefusedClients<I> {
    fn default() -> Self {
        Self { waiting: VecDeque::new(), count: 0 }
    }
}

impl<I> RefusedClients<I> {
    pub(crate) fn push(&mut self, remote: SocketAddr, identity: I, reason: RefuseReason) {
        self.count = self.count.saturating_add(1);
        if self.waiting.len() >= MAX_QUEUED {
            self.waiting.pop_front();
        }
        self.waiting.push_back(RefusedClient { remote, identity, reason });
    }

    pub(crate) fn pop(&mut self) -> Option<RefusedClient<I>> {
        self.waiting.pop_front()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(crate) const fn count(&self) -> u64 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_refused_clients_are_kept() {
        let mut refused = RefusedClients::default();
        for identity in 0..100 {
            refused.push(([127, 0, 0, 1], 1).into(), identity, RefuseReason::WrongPassword);
        }
        let kept: Vec<u32> = refused.waiting.iter().map(|client| client.identity).collect();
        assert_eq!((kept, refused.count()), ((36..100).collect(), 100));
    }
}
