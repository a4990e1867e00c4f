//! Measures the duration of ticks.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde_json::{Value, json};

/// The upper limit of the histogram, in microseconds. Longer ticks are counted as this long.
const LONGEST: u64 = 10_000_000;

/// Durations of ticks since the last report.
///
/// ```
/// use std::time::Duration;
/// use snowfight_server::Meter;
///
/// let mut meter = Meter::new();
/// (1..=100).for_each(|millis| meter.record(Duration::from_millis(millis), Duration::ZERO));
/// let report = meter.take();
/// assert_eq!(report.ticks, 100);
/// assert!(report.p99 >= Duration::from_millis(99) && report.p50 < Duration::from_millis(51));
/// assert_eq!(meter.take().ticks, 0);
/// ```
#[derive(Debug)]
pub struct Meter {
    took: Histogram<u64>,
    late: Histogram<u64>,
}

/// The report of a [`Meter`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The number of ticks.
    pub ticks: u64,
    /// The median duration of a tick, from its start until its last datagram is handed to the socket.
    pub p50: Duration,
    /// The 99th percentile of the tick duration.
    pub p99: Duration,
    /// The 99th percentile of the delay between the due time and the start of a tick.
    pub late_p99: Duration,
    /// The number of players at the end of the interval, including bots.
    pub players: usize,
    /// The number of sent datagrams.
    pub datagrams: u64,
    /// The number of sent bytes, without IP and UDP headers.
    pub bytes: u64,
    /// The number of snapshots sent.
    pub snapshots: u64,
    /// The number of snapshots skipped because the client was behind (docs/game.md#pacing).
    pub thinned: u64,
    /// The number of snapshots skipped because the client's transport queue was full.
    pub backlogged: u64,
}

impl Meter {
    /// Creates an empty meter.
    ///
    /// # Panics
    /// Never panics: the bounds of the histogram are constants.
    #[must_use]
    pub fn new() -> Self {
        let histogram = || Histogram::new_with_bounds(1, LONGEST, 3).expect("valid constant bounds");
        Self { took: histogram(), late: histogram() }
    }

    /// Records the duration of a tick and the delay of its start.
    pub fn record(&mut self, took: Duration, late: Duration) {
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.took.saturating_record(micros(took));
        self.late.saturating_record(micros(late));
    }

    /// Returns the report for the time since the previous call, and resets the meter.
    pub fn take(&mut self) -> Report {
        let at =
            |histogram: &Histogram<u64>, share| Duration::from_micros(histogram.value_at_quantile(share));
        let report = Report {
            ticks: self.took.len(),
            p50: at(&self.took, 0.5),
            p99: at(&self.took, 0.99),
            late_p99: at(&self.late, 0.99),
            ..Report::default()
        };
        self.took.reset();
        self.late.reset();
        report
    }
}

impl Default for Meter {
    fn default() -> Self {
        Self::new()
    }
}

impl Report {
    /// Returns the report as a JSON object. Durations are in microseconds.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({
            "ticks": self.ticks,
            "tick_us_p50": self.p50.as_micros() as u64,
            "tick_us_p99": self.p99.as_micros() as u64,
            "late_us_p99": self.late_p99.as_micros() as u64,
            "players": self.players,
            "datagrams": self.datagrams,
            "bytes": self.bytes,
            "snapshots": self.snapshots,
            "thinned": self.thinned,
            "backlogged": self.backlogged,
        })
    }
}
