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
    /// The address that the client says is its own.
    pub remote: SocketAddr,
    /// The identity that the client claims: in RakNet its GUID.
    pub identity: I,
    /// Why it was refused.
    pub reason: RefuseReason,
    /// Whether the client has shown that it receives what is sent to `remote`, by a cookie or a pong. If not the address may be
    /// forged, so it is no reason for a ban; with [`CookiePolicy::Required`](rakwire::raknet::CookiePolicy::Required) it is always
    /// validated.
    pub is_validated: bool,
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
    pub(crate) fn push(&mut self, client: RefusedClient<I>) {
        self.count = self.count.saturating_add(1);
        if self.waiting.len() >= MAX_QUEUED {
            self.waiting.pop_front();
        }
        self.waiting.push_back(client);
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
            refused.push(RefusedClient {
                remote: ([127, 0, 0, 1], 1).into(),
                identity,
                reason: RefuseReason::WrongPassword,
                is_validated: true,
            });
        }
        let kept: Vec<u32> = refused.waiting.iter().map(|client| client.identity).collect();
        assert_eq!((kept, refused.count()), ((36..100).collect(), 100));
    }
}
