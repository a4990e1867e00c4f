//! The time, which what decides without IO is told.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// The time, as both clocks tell it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Now {
    /// It never moves back.
    pub(crate) at: Instant,
    /// What other machines know too. It moves when somebody sets the clock.
    pub(crate) wall: SystemTime,
}

impl Now {
    /// Reads both clocks.
    pub(crate) fn read() -> Self {
        Self { at: Instant::now(), wall: SystemTime::now() }
    }

    /// The seconds since 1970, none before that.
    pub(crate) fn unix_seconds(self) -> u64 {
        self.wall.duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
    }
}
