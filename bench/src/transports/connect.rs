//! The time that a page takes to connect: with each transport, and with automatic selection.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

/// The latency of the path in each direction, half of the round-trip time.
pub(super) const LATENCY: Duration = Duration::from_millis(50);
/// The number of connections that a page opens in each case.
pub(super) const CONNECTIONS: u32 = 50;
/// The goal for the 95th percentile with automatic selection, in milliseconds.
const GOAL_MS: f64 = 1_000.0;
const AUTO: &str = "auto";
/// The measured cases: the transport, and whether UDP is blocked.
pub(super) const CASES: [(&str, bool); 5] =
    [(AUTO, false), (AUTO, true), ("webtransport", false), ("webrtc", false), ("websocket", false)];

/// A connection that a page opened.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Opened {
    ms: f64,
    transport: String,
}

/// The result of a case.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    transport: &'static str,
    udp_blocked: bool,
    p50_ms: f64,
    p95_ms: f64,
    /// The number of connections per transport that opened them.
    by: BTreeMap<String, usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    goal: Option<Goal>,
    connections: Vec<Opened>,
}

#[derive(Debug, PartialEq, Serialize)]
struct Goal {
    at_most_ms: f64,
    met: bool,
}

impl Row {
    /// Parses the output of the script that controls the page.
    pub(super) fn read(transport: &'static str, udp_blocked: bool, line: &str) -> Result<Self> {
        let connections: Vec<Opened> =
            serde_json::from_str(line).with_context(|| format!("not the result of a measurement: {line}"))?;
        let mut times: Vec<f64> = connections.iter().map(|opened| opened.ms).collect();
        times.sort_by(f64::total_cmp);
        let p95_ms = percentile(&times, 95).context("no connection was opened")?;
        let mut by = BTreeMap::new();
        for opened in &connections {
            *by.entry(opened.transport.clone()).or_default() += 1;
        }
        Ok(Self {
            transport,
            udp_blocked,
            p50_ms: percentile(&times, 50).context("no connection was opened")?,
            p95_ms,
            by,
            goal: (transport == AUTO).then_some(Goal { at_most_ms: GOAL_MS, met: p95_ms <= GOAL_MS }),
            connections,
        })
    }

    pub(super) fn line(&self) -> String {
        let udp = if self.udp_blocked { "blocked" } else { "open" };
        let by: Vec<String> = self.by.iter().map(|(name, count)| format!("{name} {count}")).collect();
        let goal = match &self.goal {
            Some(Goal { met: true, .. }) => "met",
            Some(_) => "missed",
            None => "",
        };
        let Self { transport, p50_ms, p95_ms, .. } = self;
        format!("| {transport} | {udp} | {p50_ms:.0} | {p95_ms:.0} | {} | {goal} |", by.join(", "))
    }
}

/// Returns the `percent`-th percentile (nearest rank) of sorted values, or `None` if there are no values.
fn percentile(sorted: &[f64], percent: usize) -> Option<f64> {
    sorted.get((sorted.len() * percent).div_ceil(100).checked_sub(1)?).copied()
}

/// The head of the table.
pub(super) const HEAD: &str = "| transport | UDP | p50 in ms | p95 in ms | opened by | goal: p95 of at most 1,000 ms |\n|---|---|---|---|---|---|";

#[cfg(test)]
mod tests {
    use super::*;

    fn row(transport: &'static str, times: &[u32]) -> Row {
        let opened = |ms: &u32| format!(r#"{{"ms":{ms},"transport":"webrtc"}}"#);
        let line = times.iter().map(opened).collect::<Vec<_>>().join(",");
        Row::read(transport, false, &format!("[{line}]")).unwrap()
    }

    #[test]
    fn the_goal_is_met_if_95_of_100_connections_are_fast_enough() {
        let times: Vec<u32> = (906..=1_005).collect();
        let all = row(AUTO, &times);
        assert_eq!((all.p50_ms, all.p95_ms), (955.0, 1_000.0));
        assert_eq!(all.line(), "| auto | open | 955 | 1000 | webrtc 100 | met |");
        let slower = row(AUTO, &[1_001]);
        assert_eq!(slower.goal, Some(Goal { at_most_ms: 1_000.0, met: false }));
        assert_eq!(row("webrtc", &[1_001]).goal, None);
    }

    #[test]
    fn output_without_connections_is_an_error() {
        assert!(Row::read(AUTO, false, "[]").is_err());
        assert!(Row::read(AUTO, false, "failed: no browser").is_err());
    }
}
