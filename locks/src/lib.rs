//! The parts of `rakwire-native` that threads share, tested in many interleavings by the scheduler shuttle.
//!
//! The source files are those of the driver. They import locks and atomics from `crate::sync`, which this crate
//! replaces with shuttle's. Run `cargo test` in this folder. `RAKWIRE_LOCKS_RUNS` sets the number of
//! interleavings per property; the default is 2,000.

#![forbid(unsafe_code)]

#[path = "../../native/src/arrivals.rs"]
#[allow(dead_code, unreachable_pub, reason = "the driver uses the rest")]
mod arrivals;

#[path = "../../native/src/endpoint/admission.rs"]
#[allow(dead_code, reason = "the driver uses the rest")]
mod admission;

#[path = "../../native/src/endpoint/inbox.rs"]
#[allow(dead_code, unreachable_pub, reason = "the driver uses the rest")]
mod inbox;

#[path = "../../native/src/endpoint/wakes.rs"]
#[allow(dead_code, reason = "the driver uses the rest")]
mod wakes;

mod telemetry {
    /// A stand-in for the tracing span of a connection.
    #[derive(Clone, Debug, Default)]
    pub(crate) struct ConnectionSpan(());
}

mod host;
mod simulation;
mod socket;

/// Shuttle's locks and atomics.
mod sync {
    use std::task::Waker;

    pub(crate) use std::sync::PoisonError;

    pub(crate) use shuttle::sync::{Arc, Mutex, MutexGuard, atomic};

    /// The waker of one task, as in the crate `atomic-waker`, which the driver uses.
    ///
    /// Like `atomic-waker`, it guarantees that a wake after a registration wakes the registered task. It uses a lock.
    #[derive(Debug, Default)]
    pub(crate) struct AtomicWaker(Mutex<Option<Waker>>);

    impl AtomicWaker {
        pub(crate) fn register(&self, waker: &Waker) {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(waker.clone());
        }

        pub(crate) fn wake(&self) {
            let waker = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
            waker.into_iter().for_each(Waker::wake);
        }
    }
}

pub mod properties;
