//! Incoming connections that the application has not accepted yet.

use std::collections::VecDeque;
use std::sync::Arc;

use rakwire::endpoint::{ConnectionId, Protocol};

use super::inbox::Inbox;

/// An open connection that nobody has accepted yet.
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

    /// Whether another connection may be pushed. Counts it if the queue is full.
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

    /// How many connections did not fit.
    pub(crate) const fn overflows(&self) -> u64 {
        self.overflows
    }
}
