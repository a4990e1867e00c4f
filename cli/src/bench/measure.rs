//! The three measurements of a path.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use indicatif::{ProgressBar, ProgressStyle};
use rakwire_native::{Connection, Delivery, SendError};

use super::summary::{Losses, Mtu, Summary, Throughput};
use super::wire::{Count, Probe};
use crate::failure::Failure;

/// The message size for the round-trip and loss measurements, in bytes.
const SMALL: usize = 64;
/// The upper bound of the histogram in microseconds.
const LONGEST: u64 = 60_000_000;
/// The significant digits of the histogram.
const DIGITS: u8 = 3;
/// The send interval of the loss measurement.
const LOSS_INTERVAL: Duration = Duration::from_millis(2);
/// The timeout for a reply.
const REPLY_TIMEOUT: Duration = Duration::from_secs(20);

/// The settings of the measurements.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    /// The duration of each measurement.
    pub(super) each: Duration,
    pub(super) size: usize,
    /// Shows progress bars.
    pub(super) shows_progress: bool,
}

pub(super) async fn run(connection: &Connection, plan: &Plan) -> Result<Summary, Failure> {
    let mtu_before = connection.mtu();
    let round_trips = measure_round_trips(connection, plan).await?;
    let losses = measure_losses(connection, plan).await?;
    let throughput = measure_throughput(connection, plan).await?;
    let stats = connection.stats();
    let mtu = Mtu::new(mtu_before, stats.map(|stats| stats.mtu));
    let datagrams_lost = stats.map_or(0, |stats| stats.datagrams_missing());
    Ok(Summary { round_trips, losses, throughput, datagrams_lost, mtu })
}

/// The progress bar of one measurement.
struct Progress {
    bar: ProgressBar,
    began: Instant,
    each: Duration,
}

impl Progress {
    fn new(plan: &Plan, name: &'static str) -> Self {
        let length = u64::try_from(plan.each.as_millis()).unwrap_or(u64::MAX);
        let bar = if plan.shows_progress { ProgressBar::new(length) } else { ProgressBar::hidden() };
        if let Ok(style) = ProgressStyle::with_template("{msg:12} [{bar:40}] {percent:>3} %") {
            bar.set_style(style);
        }
        bar.set_message(name);
        Self { bar, began: Instant::now(), each: plan.each }
    }

    /// Updates the bar and returns true if the measurement is still running.
    fn is_running(&self) -> bool {
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
    Failure::runtime(format!("cannot send a message: {error}"))
}

/// Receives the next message from the peer.
async fn reply(connection: &Connection) -> Result<Vec<u8>, Failure> {
    let message = tokio::time::timeout(REPLY_TIMEOUT, connection.recv()).await.map_err(|_| {
        let seconds = REPLY_TIMEOUT.as_secs();
        Failure::runtime(format!("no reply within {seconds} s; is `rakwire bench --listen` running there?"))
    })?;
    let message = message.ok_or_else(|| Failure::runtime("the connection was closed"))?;
    Ok(message.bytes)
}

/// Measures round-trip times. Each message is sent after the echo of the previous one.
async fn measure_round_trips(connection: &Connection, plan: &Plan) -> Result<Histogram<u64>, Failure> {
    let histogram = Histogram::new_with_max(LONGEST, DIGITS);
    let mut histogram = histogram.map_err(|error| Failure::runtime(format!("no histogram: {error}")))?;
    let message = Probe::Echo.message(SMALL);
    let progress = Progress::new(plan, "round trips");
    while progress.is_running() {
        let sent = Instant::now();
        connection.send(&message, Delivery::RELIABLE_ORDERED).await.map_err(cannot_send)?;
        if reply(connection).await? != message {
            return Err(Failure::runtime(
                "the remote machine does not echo; is `rakwire bench --listen` running there?",
            ));
        }
        histogram.saturating_record(u64::try_from(sent.elapsed().as_micros()).unwrap_or(LONGEST));
    }
    Ok(histogram)
}

/// Sends unreliable messages at a fixed interval, and requests the number that arrived.
async fn measure_losses(connection: &Connection, plan: &Plan) -> Result<Losses, Failure> {
    let message = Probe::Counted.message(SMALL);
    let progress = Progress::new(plan, "losses");
    let mut ticks = tokio::time::interval(LOSS_INTERVAL);
    let mut sent = 0;
    while progress.is_running() {
        ticks.tick().await;
        connection.send(&message, Delivery::UNRELIABLE).await.map_err(cannot_send)?;
        sent += 1;
    }
    // The last messages may arrive later than the request for the count.
    let round_trip = connection.stats().map_or(Duration::ZERO, |stats| stats.round_trip);
    tokio::time::sleep(2 * round_trip + Duration::from_millis(100)).await;
    let count = reported_count(connection).await?;
    Ok(Losses { sent, arrived: count.messages.min(sent) })
}

/// Sends reliable messages as fast as the path accepts them, and requests the number that arrived.
async fn measure_throughput(connection: &Connection, plan: &Plan) -> Result<Throughput, Failure> {
    let message = Probe::Counted.message(plan.size);
    let progress = Progress::new(plan, "throughput");
    let mut sent = 0_u32;
    while progress.is_running() {
        for _ in 0..32 {
            connection.send(&message, Delivery::RELIABLE_ORDERED).await.map_err(cannot_send)?;
        }
        sent += 32;
    }
    let count = reported_count(connection).await?;
    if count.messages != u64::from(sent) {
        return Err(Failure::runtime(format!("only {} of {sent} messages arrived", count.messages)));
    }
    Ok(Throughput { messages: count.messages, bytes: count.bytes, took: progress.began.elapsed() })
}

/// Requests the count of arrived messages. Earlier ordered messages arrive before the request.
async fn reported_count(connection: &Connection) -> Result<Count, Failure> {
    let request = Probe::ReportCount.message(2);
    connection.send(&request, Delivery::RELIABLE_ORDERED).await.map_err(cannot_send)?;
    let message = reply(connection).await?;
    Count::from_bytes(&message).ok_or_else(|| {
        Failure::runtime("invalid reply from the remote machine; run the same version of rakwire on both")
    })
}
