//! How long ticks take.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde_json::{Value, json};

/// The longest tick that is told apart, in microseconds.
const LONGEST: u64 = 10_000_000;

/// Times of ticks, since somebody last asked.
///
/// ```
/// use std::time::Duration;
/// use snowfight_server::Meter;
///
/// let mut meter = Meter::new();
/// (1..=100).for_each(|millis| meter.note(Duration::from_millis(millis), Duration::ZERO));
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

/// What a [`Meter`] has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// How many ticks.
    pub ticks: u64,
    /// What half of them took at most, from the first rule of the world to the last datagram in the socket.
    pub p50: Duration,
    /// What 99 of 100 took at most.
    pub p99: Duration,
    /// How late 99 of 100 began at most.
    pub late_p99: Duration,
    /// Players at the end of it, bots too.
    pub players: usize,
    /// Datagrams that were sent.
    pub datagrams: u64,
    /// Bytes of them, without IP and UDP.
    pub bytes: u64,
}

impl Meter {
    /// A meter that has seen nothing.
    ///
    /// # Panics
    /// Never: its bounds are constants.
    #[must_use]
    pub fn new() -> Self {
        let histogram = || Histogram::new_with_bounds(1, LONGEST, 3).expect("constant bounds that are right");
        Self { took: histogram(), late: histogram() }
    }

    /// A tick was made: how long it took, and how late it began.
    pub fn note(&mut self, took: Duration, late: Duration) {
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.took.saturating_record(micros(took));
        self.late.saturating_record(micros(late));
    }

    /// What there was since the last time.
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
    /// The report as an object of JSON, times in microseconds.
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
        })
    }
}
