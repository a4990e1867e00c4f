//! The clock of an endpoint.

use rakwire::Instant;

/// The seconds since 1970. A clock that is set to a time before counts as the end of time: nothing is accepted by it that
/// expires.
pub(crate) fn unix_time() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(u64::MAX, |since| since.as_secs())
}

/// Converts between the system's monotonic clock and that of the core, whose epoch is the start of the endpoint.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: std::time::Instant,
}

impl Clock {
    pub(crate) fn start() -> Self {
        // Starts at one second, so that no time is zero.
        let now = std::time::Instant::now();
        Self { start: now.checked_sub(std::time::Duration::from_secs(1)).unwrap_or(now) }
    }

    pub(crate) fn now(&self) -> Instant {
        let micros = self.start.elapsed().as_micros();
        Instant::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
    }

    /// The deadline of a tokio timer for `instant`; `None` if it is too far away.
    pub(crate) fn deadline(&self, instant: Instant) -> Option<tokio::time::Instant> {
        let since_start = std::time::Duration::from_micros(instant.as_micros());
        self.start.checked_add(since_start).map(tokio::time::Instant::from_std)
    }
}
