//! What the system's UDP does without RakNet, measured in the same sitting.

use std::process::Command;

use anyhow::{Context, Result};

use crate::alone::Effort;
use crate::pairing::{Bench, Verdict, itself, median};
use crate::process::Program;
use crate::raw::DATAGRAM;
use crate::report::{Better, Row};

/// Medians of the runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bare {
    /// Full datagrams a second that one socket sends and another one receives, one call each.
    pub(crate) datagrams: f64,
    /// The same with many datagrams in a call.
    batched: f64,
    /// Round trips of 64 bytes on tokio.
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
}

impl Bare {
    pub(crate) fn measure(bench: &Bench, effort: Effort) -> Result<Self> {
        let millis = if effort == Effort::Quick { "20" } else { "500" };
        let count = if effort == Effort::Quick { "200" } else { "10000" };
        let rate = |more: &[&str]| -> Result<f64> {
            let runs = (0..bench.runs).map(|_| flood(bench, millis, more));
            let rates = runs.collect::<Result<Vec<f64>>>()?;
            median(rates).context("no run")
        };
        let (datagrams, batched) = (rate(&[])?, rate(&["--batched"])?);
        let trips: Vec<Verdict> = (0..bench.runs).map(|_| trip(bench, count)).collect::<Result<_>>()?;
        let middle = |value: fn(&Verdict) -> Option<f64>| {
            median(trips.iter().filter_map(value)).context("no round trip")
        };
        Ok(Self {
            datagrams,
            batched,
            p50_us: middle(|verdict| verdict.p50_us)?,
            p99_us: middle(|verdict| verdict.p99_us)?,
        })
    }

    pub(crate) fn megabytes(&self) -> f64 {
        self.datagrams * DATAGRAM as f64 / 1e6
    }

    pub(crate) fn rows(&self) -> [Row; 4] {
        [
            Row::new("bare_udp", self.datagrams, "datagrams/s", Better::Higher),
            Row::new("bare_udp_batched", self.batched, "datagrams/s", Better::Higher),
            Row::new("bare_pingpong_64b", self.p50_us, "µs", Better::Lower),
            Row::new("bare_pingpong_64b_p99", self.p99_us, "µs", Better::Lower),
        ]
    }
}

fn raw(arguments: &[&str]) -> Result<Command> {
    let mut command = itself()?;
    command.arg("raw").args(arguments);
    Ok(command)
}

/// The rate at which a flood arrives.
fn flood(bench: &Bench, millis: &str, more: &[&str]) -> Result<f64> {
    let sink = Program::start(raw(&["sink"])?, bench.cores.receiver, bench.limit)?;
    let address = format!("127.0.0.1:{}", sink.port()?);
    let mut command = raw(&["flood", &address, "--millis", millis])?;
    command.args(more);
    let mut flood = Program::start(command, bench.cores.sender, bench.limit)?;
    flood.connected()?;
    flood.go()?;
    flood.line()?;
    let verdict: Verdict = serde_json::from_str(&sink.line()?)?;
    Ok(verdict.messages as f64 / verdict.seconds.max(1e-6))
}

fn trip(bench: &Bench, count: &str) -> Result<Verdict> {
    let echo = Program::start(raw(&["echo"])?, bench.cores.receiver, bench.limit)?;
    let address = format!("127.0.0.1:{}", echo.port()?);
    let command = raw(&["pingpong", &address, "--count", count])?;
    let mut client = Program::start(command, bench.cores.sender, bench.limit)?;
    client.connected()?;
    client.go()?;
    Ok(serde_json::from_str(&client.line()?)?)
}
