//! A peer that is built without statistics keeps of pongs only what the other peer's clock shows.

use core::time::Duration;

/// What the last pong showed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PingStats {
    /// The other clock minus ours, in milliseconds.
    difference: Option<i64>,
}

impl PingStats {
    /// The other clock read `remote` milliseconds when ours read `local`.
    pub(super) const fn sample(&mut self, _: u32, local: u64, remote: u64) {
        self.difference = Some(remote.wrapping_sub(local) as i64);
    }

    pub(super) const fn last(&self) -> Duration {
        Duration::ZERO
    }

    pub(super) const fn lowest(&self) -> Duration {
        Duration::ZERO
    }

    pub(super) const fn average(&self) -> Duration {
        Duration::ZERO
    }

    /// The other clock minus ours in milliseconds, by the last ping.
    pub(super) const fn difference(&self) -> Option<i64> {
        self.difference
    }
}
