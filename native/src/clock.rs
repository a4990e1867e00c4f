//! The clock of an endpoint, and the time of day.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rakwire::Instant;

/// Converts between the system's monotonic clock and that of the core, whose epoch is one second before the clock was started.
///
/// Endpoints have one of their own ([`Endpoint::now`](crate::endpoint::Endpoint::now)). It is for drivers that run parts of the
/// core over something else, as `rakwire-extras` does over TCP.
///
/// ```
/// use rakwire_native::Clock;
///
/// let clock = Clock::start();
/// let (before, after) = (clock.now(), clock.now());
/// assert!(before <= after && before.as_micros() >= 1_000_000);
/// assert!(clock.deadline(before).is_some());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: std::time::Instant,
}

impl Clock {
    /// Starts a clock.
    #[must_use]
    pub fn start() -> Self {
        // Starts at one second, so that no time is zero.
        let now = std::time::Instant::now();
        Self { start: now.checked_sub(Duration::from_secs(1)).unwrap_or(now) }
    }

    /// Returns the time.
    #[must_use]
    pub fn now(&self) -> Instant {
        let micros = self.start.elapsed().as_micros();
        Instant::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
    }

    /// Returns the deadline of a tokio timer for `instant`; `None` if it is too far away.
    #[must_use]
    pub fn deadline(&self, instant: Instant) -> Option<tokio::time::Instant> {
        let since_start = Duration::from_micros(instant.as_micros());
        self.start.checked_add(since_start).map(tokio::time::Instant::from_std)
    }
}

/// Converts the times of an endpoint to those since 1970-01-01 in UTC, for captures and logs. It asks the system once, at the
/// first time that it converts, so that the order of what happened stays as it was even if somebody sets the clock.
///
/// ```
/// use std::time::Duration;
/// use rakwire_native::WallClock;
///
/// let mut clock = WallClock::default();
/// let first = clock.convert(rakwire::Instant::from_micros(5));
/// let second = clock.convert(rakwire::Instant::from_micros(12));
/// assert_eq!(second - first, Duration::from_micros(7));
/// assert!(first.as_secs() > 1_700_000_000);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct WallClock {
    /// The time of day at the epoch of the endpoint's clock, once it is known.
    epoch: Option<Duration>,
}

impl WallClock {
    /// The time since 1970 at a time of the endpoint.
    pub fn convert(&mut self, at: Instant) -> Duration {
        let since_epoch = at.saturating_since(Instant::ZERO);
        let epoch = self.epoch.get_or_insert_with(|| since_1970().saturating_sub(since_epoch));
        *epoch + since_epoch
    }
}

/// The seconds since 1970. A clock that is set to a time before counts as the end of time: nothing is accepted by it that
/// expires.
pub(crate) fn unix_time() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(u64::MAX, |since| since.as_secs())
}

/// The time of day now.
fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
