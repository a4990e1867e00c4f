//! What the tasks of an endpoint share.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::watch;

use super::options::Options;
use super::shared::Shared;
use super::stats::Counter;
use crate::clock::Clock;
use crate::endpoint::spans::EndpointSpan;

/// What the tasks of an endpoint need.
#[derive(Debug)]
pub(super) struct EndpointState {
    pub(super) options: Options,
    pub(super) counters: EndpointCounters,
    pub(super) span: EndpointSpan,
    pub(super) clock: Clock,
    connections: Mutex<Vec<Weak<Shared>>>,
    is_closed: watch::Sender<bool>,
}

#[derive(Debug, Default)]
pub(super) struct EndpointCounters {
    pub(super) refused: Counter,
    pub(super) refused_by_address: Counter,
    pub(super) refused_by_network: Counter,
    pub(super) accept_failures: Counter,
    #[cfg(feature = "tls")]
    pub(super) handshakes_failed: Counter,
}

impl EndpointState {
    pub(super) fn new(options: Options) -> Self {
        Self {
            options,
            counters: EndpointCounters::default(),
            span: EndpointSpan::new("TCP"),
            clock: Clock::start(),
            connections: Mutex::default(),
            is_closed: watch::Sender::new(false),
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        *self.is_closed.borrow()
    }

    /// Waits until the endpoint accepts nothing any more.
    pub(super) async fn closed(&self) {
        // It cannot fail: the sender lives as long as this.
        let _ = self.is_closed.subscribe().wait_for(|is_closed| *is_closed).await;
    }

    pub(super) fn stop(&self) {
        self.is_closed.send_replace(true);
    }

    /// Remembers a connection, to close it with the endpoint.
    pub(super) fn register(&self, shared: &Arc<Shared>) {
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        // Amortised: what has ended is forgotten whenever the list would grow.
        if connections.len() == connections.capacity() {
            connections.retain(|connection| connection.strong_count() > 0);
        }
        connections.push(Arc::downgrade(shared));
        drop(connections);
        if self.is_closed() {
            shared.close();
        }
    }

    pub(super) fn connections(&self) -> Vec<Arc<Shared>> {
        let connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        connections.iter().filter_map(Weak::upgrade).collect()
    }
}
