//! Whether the program lives, for a watchdog.

use core::pin::pin;
use core::sync::atomic::{AtomicU32, Ordering};

use embassy_futures::select::{Either, select};
use embassy_time::{Duration, Timer};

/// How long the program may go without a beat: a watchdog needs a longer time than this.
pub const PERIOD: Duration = Duration::from_secs(2);

/// Counts the beats of a program. A task that hangs beats no more, and then nobody feeds the watchdog.
#[derive(Debug)]
pub struct Pulse {
    beats: AtomicU32,
}

impl Pulse {
    /// A pulse that has not beaten yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { beats: AtomicU32::new(0) }
    }

    /// The program lives.
    pub fn beat(&self) {
        // No read-modify-write: the smallest cores have none, and nobody else writes.
        self.beats.store(self.beats.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// Waits for something from outside, which may take any time and is no hanging.
    pub async fn while_waiting<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        loop {
            self.beat();
            if let Either::First(output) = select(future.as_mut(), Timer::after(PERIOD / 2)).await {
                return output;
            }
        }
    }

    /// Feeds a watchdog as long as there are beats.
    pub async fn guard(&self, mut feed: impl FnMut()) -> ! {
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

impl Default for Pulse {
    fn default() -> Self {
        Self::new()
    }
}
