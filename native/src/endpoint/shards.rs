//! Several endpoints at one address, which decide together whom they let in.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use rakwire::Instant;
use rakwire::endpoint::Protocol;

use super::shared::Shared;
use super::state::State;

/// All endpoints of a server: one, or its shards.
#[derive(Debug)]
pub(crate) struct Shards<P: Protocol> {
    all: Vec<Weak<Shared<P>>>,
    /// Held while something changes at all of them, so that changes come in the same order everywhere.
    changes: Mutex<()>,
}

impl<P: Protocol> Shards<P> {
    pub(crate) fn of(all: &[Arc<Shared<P>>]) -> Arc<Self> {
        Arc::new(Self { all: all.iter().map(Arc::downgrade).collect(), changes: Mutex::new(()) })
    }

    fn begin_change(&self) -> MutexGuard<'_, ()> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does the same at each endpoint of the server, and returns what came of it at the last one: they have the same
    /// configuration and history, so it is the same at each.
    pub(crate) fn act<R>(&self, mut act: impl FnMut(&mut State<P>, Instant) -> R) -> Option<R> {
        let _change = self.begin_change();
        self.all.iter().filter_map(Weak::upgrade).map(|shared| shared.act(&mut act)).last()
    }
}
