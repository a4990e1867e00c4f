//! Counts the work of a server or its clients between two lines of input.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::role;

/// The work that a program has done between two lines of input.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Window {
    pub(super) seconds: f64,
    /// The number of received messages.
    pub(super) received: u64,
    /// The 99th percentile of the duration of a tick.
    pub(super) tick_p99_us: f64,
    /// The 99th percentile of the delay between the due time and the start of a tick.
    pub(super) late_p99_us: f64,
}

#[derive(Debug)]
struct Counts {
    began: Instant,
    received: u64,
    ticks: Vec<Duration>,
    late: Vec<Duration>,
}

impl Counts {
    fn begin() -> Self {
        Self { began: Instant::now(), received: 0, ticks: Vec::new(), late: Vec::new() }
    }
}

/// The counts of the current window, shared by all threads of a program.
#[derive(Clone, Debug)]
pub(super) struct Record(Arc<Mutex<Counts>>);

impl Record {
    pub(super) fn begin() -> Self {
        Self(Arc::new(Mutex::new(Counts::begin())))
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn received(&self, messages: u64) {
        self.lock().received += messages;
    }

    /// Records a tick that has just finished. It was due at `due` and started at `began`.
    pub(super) fn tick(&self, due: Instant, began: Instant) {
        let mut counts = self.lock();
        counts.ticks.push(began.elapsed());
        counts.late.push(began.saturating_duration_since(due));
    }

    /// Returns the current window and starts the next one.
    fn take(&self) -> Window {
        let counts = std::mem::replace(&mut *self.lock(), Counts::begin());
        Window {
            seconds: counts.began.elapsed().as_secs_f64(),
            received: counts.received,
            tick_p99_us: percentile_99(counts.ticks),
            late_p99_us: percentile_99(counts.late),
        }
    }

    /// Prints the current window and starts the next one for each line of standard input, until its end.
    pub(super) fn print_at_each_line(&self) -> Result<()> {
        for line in io::stdin().lines() {
            line?;
            print_line(&serde_json::to_string(&self.take())?)?;
        }
        Ok(())
    }
}

pub(super) fn print_line(line: &str) -> Result<()> {
    role::print_line(line).map_err(anyhow::Error::msg)
}

/// Returns the 99th percentile (nearest rank) in microseconds, or 0 if there are no values.
fn percentile_99(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    let rank = (times.len() * 99).div_ceil(100).max(1);
    times.get(rank - 1).map_or(0.0, |time| time.as_secs_f64() * 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_percentile_is_an_observed_time_or_zero() {
        let times = (1..=200).rev().map(Duration::from_micros).collect();
        assert_eq!(percentile_99(times), 198.0);
        assert_eq!(percentile_99(Vec::new()), 0.0);
    }

    #[test]
    fn a_window_starts_when_the_previous_window_was_taken() {
        let record = Record::begin();
        record.received(3);
        let due = Instant::now();
        record.tick(due, due);
        assert_eq!(record.take().received, 3);
        let next = record.take();
        assert_eq!((next.received, next.tick_p99_us), (0, 0.0));
    }
}
