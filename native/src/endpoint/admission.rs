//! Admission of clients: limits shared by the shards of a server, decisions of the application, the accept queue, and
//! refused clients.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;

use rakwire::endpoint::{Admission, Client, ConnectionId, Decision, Protocol, SharedAdmission};

use super::inbox::Inbox;
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Admission state shared by the shards of a server.
#[derive(Clone, Debug, Default)]
pub(crate) struct LockedAdmission(Arc<Mutex<Admission>>);

impl SharedAdmission for LockedAdmission {
    fn with(&self, decide: &mut dyn FnMut(&mut Admission)) {
        decide(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Clients that wait for a decision of the application.
#[derive(Debug)]
pub(crate) struct Deferred {
    /// Maximum number of waiting clients.
    limit: usize,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// The last request of each waiting client. The protocol handles it again once the application has decided.
    waiting: HashMap<SocketAddr, Box<[u8]>>,
    /// Clients that have not been passed to the application yet.
    undelivered: VecDeque<Client>,
    /// The decision on the request that the protocol is handling at the moment.
    decision: Option<Decision>,
    /// The client for which the protocol has just requested a decision.
    asked: Option<Client>,
    overflows: u64,
}

impl Deferred {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, inner: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the decision on a client, which may still be pending.
    fn ask(&self, client: &Client) -> Decision {
        let mut inner = self.lock();
        if let Some(decision) = inner.decision.take() {
            return decision;
        }
        if inner.waiting.len() < self.limit || inner.waiting.contains_key(&client.remote) {
            inner.asked = Some(*client);
        } else {
            inner.overflows += 1;
        }
        Decision::Ignore
    }

    /// Stores the request of the client for which the protocol has just requested a decision. Returns the client if it
    /// was not waiting already.
    pub(crate) fn keep(&self, request: &[u8]) -> Option<Client> {
        let mut inner = self.lock();
        let client = inner.asked.take()?;
        let before = inner.waiting.insert(client.remote, request.into());
        if before.is_some() {
            return None;
        }
        inner.undelivered.push_back(client);
        Some(client)
    }

    /// Removes the request of a waiting client, and stores `decision` for the protocol's next query about it.
    pub(crate) fn take(&self, remote: SocketAddr, decision: Decision) -> Option<Box<[u8]>> {
        let mut inner = self.lock();
        let request = inner.waiting.remove(&remote)?;
        inner.decision = Some(decision);
        Some(request)
    }

    /// Clears the decision after the protocol has handled the request, in case it was rejected before a decision was
    /// needed.
    pub(crate) fn end_decision(&self) {
        self.lock().decision = None;
    }

    /// Returns the next client that has not been passed to the application.
    pub(crate) fn pop(&self) -> Option<Client> {
        self.lock().undelivered.pop_front()
    }

    pub(crate) fn has_undelivered(&self) -> bool {
        !self.lock().undelivered.is_empty()
    }

    /// Returns the number of clients that were dropped because too many were waiting.
    pub(crate) fn overflows(&self) -> u64 {
        self.lock().overflows
    }
}

/// Applies the limits shared by the endpoints of a server, and then defers to the application.
#[derive(Clone, Debug)]
pub(crate) struct DeferredAdmission {
    pub(crate) all: LockedAdmission,
    pub(crate) deferred: Arc<Deferred>,
}

impl SharedAdmission for DeferredAdmission {
    fn with(&self, decide: &mut dyn FnMut(&mut Admission)) {
        self.all.with(decide);
    }

    fn decide(&self, client: &Client) -> Decision {
        self.deferred.ask(client)
    }
}

/// An open connection that has not been accepted yet.
#[derive(Debug)]
pub(crate) struct Unaccepted<P: Protocol> {
    pub(crate) id: ConnectionId,
    pub(crate) identity: P::Identity,
    pub(crate) inbox: Arc<Inbox<P>>,
}

/// The accept queue of an endpoint.
#[derive(Debug)]
pub(crate) struct AcceptQueue<P: Protocol> {
    /// False once the endpoint is closed or dropped.
    is_open: bool,
    limit: usize,
    waiting: VecDeque<Unaccepted<P>>,
    overflows: u64,
}

impl<P: Protocol> AcceptQueue<P> {
    pub(crate) const fn new(limit: usize) -> Self {
        Self { is_open: true, limit, waiting: VecDeque::new(), overflows: 0 }
    }

    pub(crate) const fn is_open(&self) -> bool {
        self.is_open
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns true if another connection may be pushed. Counts an overflow if the queue is full.
    pub(crate) fn admits(&mut self) -> bool {
        let has_room = self.waiting.len() < self.limit;
        self.overflows += u64::from(self.is_open && !has_room);
        self.is_open && has_room
    }

    pub(crate) fn push(&mut self, connection: Unaccepted<P>) {
        self.waiting.push_back(connection);
    }

    pub(crate) fn pop(&mut self) -> Option<Unaccepted<P>> {
        self.waiting.pop_front()
    }

    /// Closes the queue and returns its connections.
    pub(crate) fn close(&mut self) -> VecDeque<Unaccepted<P>> {
        self.is_open = false;
        std::mem::take(&mut self.waiting)
    }

    /// Returns the number of connections dropped because the queue was full.
    pub(crate) const fn overflows(&self) -> u64 {
        self.overflows
    }
}

/// Maximum length of the queue.
const MAX_QUEUED: usize = 64;

/// Refused clients that the application has not taken yet. A full queue drops the oldest.
#[derive(Debug)]
pub(crate) struct RefusedClients<C> {
    waiting: VecDeque<C>,
    count: u64,
}

impl<C> Default for RefusedClients<C> {
    fn default() -> Self {
        Self { waiting: VecDeque::new(), count: 0 }
    }
}

impl<C> RefusedClients<C> {
    pub(crate) fn push(&mut self, client: C) {
        self.count = self.count.saturating_add(1);
        if self.waiting.len() >= MAX_QUEUED {
            self.waiting.pop_front();
        }
        self.waiting.push_back(client);
    }

    pub(crate) fn pop(&mut self) -> Option<C> {
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
    fn only_the_newest_refused_clients_are_kept() {
        let mut refused = RefusedClients::default();
        for client in 0..100 {
            refused.push(client);
        }
        let kept: Vec<u32> = refused.waiting.iter().copied().collect();
        assert_eq!((kept, refused.count()), ((36..100).collect(), 100));
    }
}
