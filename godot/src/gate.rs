//! An admission gate: refuses new clients while it is closed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rakwire_native::rakwire::endpoint::{Admission, Client, Decision, SharedAdmission};

#[derive(Debug, Default)]
struct Inner {
    is_closed: AtomicBool,
    admission: Mutex<Admission>,
}

/// A gate for new clients, shared by the session and its endpoint.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gate(Arc<Inner>);

impl Gate {
    /// Starts or stops refusing new clients.
    pub(crate) fn set_closed(&self, is_closed: bool) {
        self.0.is_closed.store(is_closed, Ordering::Relaxed);
    }
}

impl SharedAdmission for Gate {
    fn with(&self, decide: &mut dyn FnMut(&mut Admission)) {
        decide(&mut self.0.admission.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn decide(&self, _: &Client) -> Decision {
        if self.0.is_closed.load(Ordering::Relaxed) { Decision::Refuse } else { Decision::Accept }
    }
}
