//! The time as the core counts it.

use std::time::Instant;

/// An epoch for the instants of one connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Epoch(Instant);

impl Epoch {
    pub(super) const fn since(epoch: Instant) -> Self {
        Self(epoch)
    }

    /// Converts an instant; one before the epoch counts as the epoch.
    pub(super) fn convert(self, instant: Instant) -> rakwire::Instant {
        let elapsed = instant.saturating_duration_since(self.0).as_micros();
        rakwire::Instant::from_micros(u64::try_from(elapsed).unwrap_or(u64::MAX))
    }
}
