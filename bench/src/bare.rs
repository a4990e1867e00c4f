//! What the system's UDP does without RakNet, measured in the same sitting.

use std::process::Command;

use anyhow::Result;

use crate::alone::Effort;
use crate::pairing::{Bench, Verdict, itself, median};
use crate::process::Program;
use crate::raw::DATAGRAM;
use crate::report::{Better, Row};

/// What each run found. The runs stand between those of the implementations that are compared with them, so that a
/// machine that is slower for a while is so for all.
#[derive(Debug, Default)]
pub(crate) struct Bare {
    /// Full datagrams a second that one socket sends and another one receives, one call each.
    floods: Vec<f64>,
    /// The same with many datagrams in a call.
    batched: Vec<f64>,
    /// Round trips of 64 bytes on tokio.
    trips: Vec<Verdict>,
}

impl Bare {
    /// Measures once how many datagrams arrive.
    pub(crate) fn flood(&mut self, bench: &Bench, effort: Effort) -> Result<()> {
        let millis = if effort == Effort::Quick { "20" } else { "500" };
        self.floods.push(flood(bench, millis, &[])?);
        self.batched.push(flood(bench, millis, &["--batched"])?);
        Ok(())
    }

    /// Measures once how long round trips take.
    pub(crate) fn trip(&mut self, bench: &Bench, effort: Effort) -> Result<()> {
        let count = if effort == Effort::Quick { "200" } else { "10000" };
        self.trips.push(trip(bench, count)?);
        Ok(())
    }

    /// Adds the runs of another one.
    pub(crate) fn join(&mut self, other: Self) {
        self.floods.extend(other.floods);
        self.batched.extend(other.batched);
        self.trips.extend(other.trips);
    }

    pub(crate) fn datagrams(&self) -> Option<f64> {
        median(self.floods.iter().copied())
    }

    pub(crate) fn megabytes(&self) -> Option<f64> {
        self.datagrams().map(|datagrams| datagrams * DATAGRAM as f64 / 1e6)
    }

    pub(crate) fn p50_us(&self) -> Option<f64> {
        median(self.trips.iter().filter_map(|trip| trip.p50_us))
    }

    pub(crate) fn p99_us(&self) -> Option<f64> {
        median(self.trips.iter().filter_map(|trip| trip.p99_us))
    }

    /// Rows of what was measured.
    pub(crate) fn rows(&self) -> Vec<Row> {
        let batched = median(self.batched.iter().copied());
        let rows = [
            ("bare_udp", self.datagrams(), "datagrams/s", Better::Higher),
            ("bare_udp_batched", batched, "datagrams/s", Better::Higher),
            ("bare_pingpong_64b", self.p50_us(), "µs", Better::Lower),
            ("bare_pingpong_64b_p99", self.p99_us(), "µs", Better::Lower),
        ];
        let row = |(name, value, unit, better): (&str, Option<f64>, &str, Better)| {
            Some(Row::new(name, value?, unit, better))
        };
        rows.into_iter().filter_map(row).collect()
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
