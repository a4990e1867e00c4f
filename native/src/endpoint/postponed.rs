//! What handles have yet to do that were dropped where the protocol must not be waited for.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use rakwire::Instant;
use rakwire::endpoint::Protocol;

use super::state::State;

/// The act of one dropped handle.
type Act<P> = Box<dyn FnOnce(&mut State<P>, Instant) + Send>;

/// Acts in the order in which the handles were dropped.
pub(crate) struct Postponed<P: Protocol>(Mutex<Vec<Act<P>>>);

impl<P: Protocol> Default for Postponed<P> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<P: Protocol> fmt::Debug for Postponed<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Postponed")
    }
}

impl<P: Protocol> Postponed<P> {
    pub(crate) fn push(&self, act: Act<P>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(act);
    }

    pub(crate) fn take(&self) -> Vec<Act<P>> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
