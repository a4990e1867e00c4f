//! The report, with one row per transport, loss recovery and loss rate.

use serde::{Deserialize, Serialize};

use super::connect;
use super::profile::Profile;
use crate::pairing::median;
use crate::report::Environment;

/// The results measured by a page.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Measured {
    /// The percentiles of the round-trip times of small messages, in milliseconds.
    p50_ms: f64,
    p99_ms: f64,
    /// The number of small messages without an echo.
    missing: u32,
    /// The number of datagrams that the page counted as lost during these round trips.
    resent: u64,
    /// Megabits per second that the server received.
    up_mbit: f64,
    /// Megabits per second that the page received.
    down_mbit: f64,
    /// The share of datagrams (0 to 1) that the page counted as lost while it sent as fast as it could.
    resent_share: f64,
}

/// The medians of several measurements.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    transport: &'static str,
    profile: Profile,
    loss: f64,
    up_mbit: Option<f64>,
    down_mbit: Option<f64>,
    p50_ms: Option<f64>,
    p99_ms: Option<f64>,
    runs: Vec<Measured>,
}

impl Row {
    pub(super) fn new(transport: &'static str, profile: Profile, loss: f64, runs: Vec<Measured>) -> Self {
        let of = |value: fn(&Measured) -> f64| median(runs.iter().map(value));
        Self {
            transport,
            profile,
            loss,
            up_mbit: of(|run| run.up_mbit),
            down_mbit: of(|run| run.down_mbit),
            p50_ms: of(|run| run.p50_ms),
            p99_ms: of(|run| run.p99_ms),
            runs,
        }
    }

    pub(super) fn line(&self) -> String {
        let cell = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| format!("{value:.1}"));
        let [up, down, p50, p99] = [self.up_mbit, self.down_mbit, self.p50_ms, self.p99_ms].map(cell);
        let (name, profile, loss) = (self.transport, self.profile.name(), self.loss * 100.0);
        format!("| {name} | {profile} | {loss} % | {up} | {down} | {p50} | {p99} |")
    }
}

/// The head of the table.
pub(super) const HEAD: &str = "| transport | recovery | loss | up in Mbit/s | down in Mbit/s | p50 in ms | p99 in ms |\n|---|---|---|---|---|---|---|";

#[derive(Debug, Default, Serialize)]
pub(super) struct Report {
    pub(super) environment: Environment,
    pub(super) rows: Vec<Row>,
    /// The times to connect.
    pub(super) connecting: Vec<connect::Row>,
}

impl Report {
    /// Formats the environment and the table of transports and losses.
    pub(super) fn losses(&self) -> String {
        let lines: String = self.rows.iter().map(|row| row.line() + "\n").collect();
        format!("{}\n\n{HEAD}\n{lines}", self.environment.sentences())
    }

    /// Formats the table of times to connect.
    pub(super) fn times_to_connect(&self) -> String {
        let lines: String = self.connecting.iter().map(|row| row.line() + "\n").collect();
        format!(
            "Measured in the same run, with {} connections per row.\n\n{}\n{lines}",
            connect::CONNECTIONS,
            connect::HEAD
        )
    }
}
