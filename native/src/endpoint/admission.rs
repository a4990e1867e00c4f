//! Whom an endpoint lets in: what the shards of a server decide together, and what the application decides.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rakwire::endpoint::{Admission, Client, Decision, SharedAdmission};

/// Whom the shards of a server have let in.
#[derive(Clone, Debug, Default)]
pub(crate) struct LockedAdmission(Arc<Mutex<Admission>>);

impl SharedAdmission for LockedAdmission {
    fn with(&self, decide: &mut dyn FnMut(&mut Admission)) {
        decide(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// The clients for which the application has not decided.
#[derive(Debug)]
pub(crate) struct Deferred {
    /// How many there may be.
    limit: usize,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// The last request of each, which the protocol handles again when it is decided.
    waiting: HashMap<SocketAddr, Box<[u8]>>,
    /// Those that the application has not been told of.
    untold: VecDeque<Client>,
    /// What is decided for the client whose request the protocol handles now.
    decision: Option<Decision>,
    /// The client that the protocol has just asked about.
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

    /// What the protocol is told: what was decided, or nothing yet.
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

    /// Keeps the request of a client that the protocol has just asked about, and returns the client if it is a new one.
    pub(crate) fn keep(&self, request: &[u8]) -> Option<Client> {
        let mut inner = self.lock();
        let client = inner.asked.take()?;
        let before = inner.waiting.insert(client.remote, request.into());
        if before.is_some() {
            return None;
        }
        inner.untold.push_back(client);
        Some(client)
    }

    /// Takes the request of a client. The next answer to the protocol is `decision`.
    pub(crate) fn take(&self, remote: SocketAddr, decision: Decision) -> Option<Box<[u8]>> {
        let mut inner = self.lock();
        let request = inner.waiting.remove(&remote)?;
        inner.decision = Some(decision);
        Some(request)
    }

    /// The protocol has handled a request that was taken, and did not ask if it had become invalid.
    pub(crate) fn end_decision(&self) {
        self.lock().decision = None;
    }

    /// The next client that the application has not been told of.
    pub(crate) fn pop(&self) -> Option<Client> {
        self.lock().untold.pop_front()
    }

    pub(crate) fn has_untold(&self) -> bool {
        !self.lock().untold.is_empty()
    }

    /// How many clients found no place to wait.
    pub(crate) fn overflows(&self) -> u64 {
        self.lock().overflows
    }
}

/// Lets the application decide, after what the endpoints of a server decide together.
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
