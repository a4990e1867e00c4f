//! The three parts of a measurement.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use indicatif::{ProgressBar, ProgressStyle};
use rakwire_native::{Connection, Delivery, SendError};

use super::summary::{Carried, Losses, Summary};
use super::wire::{Count, Probe};
use crate::failure::Failure;

/// Bytes of a message whose round trip is measured, or that may get lost.
const SMALL: usize = 64;
/// The longest round trip that is told apart, in microseconds, and its digits.
const LONGEST: u64 = 60_000_000;
const DIGITS: u8 = 3;
/// The time between two messages that may get lost.
const LOSS_INTERVAL: Duration = Duration::from_millis(2);
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// What is measured, and how long.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) each: Duration,
    pub(super) size: usize,
    /// Whether somebody sees the progress.
    pub(super) shows: bool,
}

pub(super) async fn run(connection: &Connection, plan: &Plan) -> Result<Summary, Failure> {
    let round_trips = measure_round_trips(connection, plan).await?;
    let losses = measure_losses(connection, plan).await?;
    let carried = measure_throughput(connection, plan).await?;
    let datagrams_lost = connection.stats().map_or(0, |stats| stats.datagrams_lost);
    Ok(Summary { round_trips, losses, carried, datagrams_lost })
}

/// A bar that fills while a part lasts.
struct Progress {
    bar: ProgressBar,
    began: Instant,
    each: Duration,
}

impl Progress {
    fn new(plan: &Plan, name: &'static str) -> Self {
        let length = u64::try_from(plan.each.as_millis()).unwrap_or(u64::MAX);
        let bar = if plan.shows { ProgressBar::new(length) } else { ProgressBar::hidden() };
        if let Ok(style) = ProgressStyle::with_template("{msg:12} [{bar:40}] {percent:>3} %") {
            bar.set_style(style);
        }
        bar.set_message(name);
        Self { bar, began: Instant::now(), each: plan.each }
    }

    /// Whether the part is not over yet.
    fn goes_on(&self) -> bool {
        let passed = self.began.elapsed();
        self.bar.set_position(u64::try_from(passed.as_millis()).unwrap_or(u64::MAX));
        passed < self.each
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn cannot_send(error: SendError) -> Failure {
    Failure::runtime(format!("a message cannot be sent: {error}"))
}

/// The next message of the other end.
async fn answer(connection: &Connection) -> Result<Vec<u8>, Failure> {
    let message = tokio::time::timeout(PATIENCE, connection.recv()).await.map_err(|_| {
        let seconds = PATIENCE.as_secs();
        Failure::runtime(format!("no answer within {seconds} s; does `rakwire bench --listen` run there?"))
    })?;
    let message = message.ok_or_else(|| Failure::runtime("the connection ended"))?;
    Ok(message.bytes)
}

/// Messages of which each waits for the echo of the one before.
async fn measure_round_trips(connection: &Connection, plan: &Plan) -> Result<Histogram<u64>, Failure> {
    let histogram = Histogram::new_with_max(LONGEST, DIGITS);
    let mut histogram = histogram.map_err(|error| Failure::runtime(format!("no histogram: {error}")))?;
    let message = Probe::Echo.message(SMALL);
    let progress = Progress::new(plan, "round trips");
    while progress.goes_on() {
        let sent = Instant::now();
        connection.send(&message, Delivery::RELIABLE_ORDERED).await.map_err(cannot_send)?;
        if answer(connection).await? != message {
            return Err(Failure::runtime(
                "the other end does not echo; does `rakwire bench --listen` run there?",
            ));
        }
        histogram.saturating_record(u64::try_from(sent.elapsed().as_micros()).unwrap_or(LONGEST));
    }
    Ok(histogram)
}

/// Messages that nobody sends again when they get lost.
async fn measure_losses(connection: &Connection, plan: &Plan) -> Result<Losses, Failure> {
    let message = Probe::Counted.message(SMALL);
    let progress = Progress::new(plan, "losses");
    let mut ticks = tokio::time::interval(LOSS_INTERVAL);
    let mut sent = 0;
    while progress.goes_on() {
        ticks.tick().await;
        connection.send(&message, Delivery::UNRELIABLE).await.map_err(cannot_send)?;
        sent += 1;
    }
    // The last ones may still be on their way when the question arrives.
    let round_trip = connection.stats().map_or(Duration::ZERO, |stats| stats.round_trip);
    tokio::time::sleep(2 * round_trip + Duration::from_millis(100)).await;
    let count = told(connection).await?;
    Ok(Losses { sent, arrived: count.messages.min(sent) })
}

/// As many messages as the path carries.
async fn measure_throughput(connection: &Connection, plan: &Plan) -> Result<Carried, Failure> {
    let message = Probe::Counted.message(plan.size);
    let progress = Progress::new(plan, "throughput");
    let mut sent = 0_u32;
    while progress.goes_on() {
        for _ in 0..32 {
            connection.send(&message, Delivery::RELIABLE_ORDERED).await.map_err(cannot_send)?;
        }
        sent += 32;
    }
    let count = told(connection).await?;
    if count.messages != u64::from(sent) {
        return Err(Failure::runtime(format!("{} of {sent} messages arrived", count.messages)));
    }
    Ok(Carried { messages: count.messages, bytes: count.bytes, took: progress.began.elapsed() })
}

/// Asks what arrived. What is ordered arrives before the question.
async fn told(connection: &Connection) -> Result<Count, Failure> {
    let question = Probe::Tell.message(2);
    connection.send(&question, Delivery::RELIABLE_ORDERED).await.map_err(cannot_send)?;
    let message = answer(connection).await?;
    Count::from_bytes(&message).ok_or_else(|| Failure::runtime("an answer that makes no sense"))
}
