//! The time of day of what an endpoint did.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rakwire::Instant;

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

/// The time of day now.
pub(crate) fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
