//! Counts signs of life of the program; a watchdog is fed only while the count grows.

use core::pin::pin;
use core::sync::atomic::{AtomicU32, Ordering};

use embassy_futures::select::{Either, select};
use embassy_time::{Duration, Timer};

/// The maximum interval between two beats. The timeout of the watchdog must be longer.
pub const PERIOD: Duration = Duration::from_secs(2);

/// Counts the beats of a program. If the program hangs, the beats stop and the watchdog is no longer fed.
#[derive(Debug)]
pub struct Heartbeat {
    beats: AtomicU32,
}

impl Heartbeat {
    /// Creates a heartbeat without beats.
    #[must_use]
    pub const fn new() -> Self {
        Self { beats: AtomicU32::new(0) }
    }

    /// Records a beat.
    pub fn beat(&self) {
        // There is only one writer, so a load and a store suffice. The smallest cores have no read-modify-write
        // instruction.
        self.beats.store(self.beats.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// Waits for an external event, which may take any time, and records beats during the wait.
    pub async fn while_waiting<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        loop {
            self.beat();
            if let Either::First(output) = select(future.as_mut(), Timer::after(PERIOD / 2)).await {
                return output;
            }
        }
    }

    /// Feeds a watchdog while the program beats.
    pub async fn feed_watchdog(&self, mut feed: impl FnMut()) -> ! {
        let mut seen = self.beats.load(Ordering::Relaxed);
        loop {
            Timer::after(PERIOD).await;
            let beats = self.beats.load(Ordering::Relaxed);
            if beats == seen {
                defmt::error!("the program hangs; the watchdog is not fed");
            } else {
                feed();
            }
            seen = beats;
        }
    }
}

impl Default for Heartbeat {
    fn default() -> Self {
        Self::new()
    }
}
