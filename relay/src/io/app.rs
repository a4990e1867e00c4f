//! State that is shared by all connections of a relay.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::drive::Connections;
use crate::config::Limits;
use crate::counters::Counters;
use crate::flow::ResumeTable;
use crate::origin::OriginPolicy;
use crate::target::Targets;

/// See the module.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) targets: Targets,
    pub(crate) origins: OriginPolicy,
    pub(crate) limits: Limits,
    pub(crate) counters: Arc<Counters>,
    resumable: Mutex<ResumeTable<Arc<Connections>>>,
    /// One permit per flow.
    pub(crate) slots: Arc<Semaphore>,
    /// One permit per TCP connection.
    pub(crate) connections: Arc<Semaphore>,
    pub(crate) stop: CancellationToken,
    /// The WebSockets that a shutdown waits for.
    pub(crate) sessions: TaskTracker,
}

impl App {
    pub(crate) fn new(targets: Targets, origins: OriginPolicy, limits: Limits) -> Self {
        Self {
            targets,
            origins,
            limits,
            counters: Arc::default(),
            resumable: Mutex::default(),
            slots: semaphore(limits.max_clients),
            connections: semaphore(limits.max_connections()),
            stop: CancellationToken::new(),
            sessions: TaskTracker::new(),
        }
    }

    /// The flows that clients can come back to.
    pub(crate) fn resumable(&self) -> MutexGuard<'_, ResumeTable<Arc<Connections>>> {
        self.resumable.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn semaphore(permits: usize) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(permits.min(Semaphore::MAX_PERMITS)))
}
