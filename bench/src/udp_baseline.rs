//! The UDP baseline: the performance of plain UDP sockets, measured in the same session.

use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use crate::core_only::Effort;
use crate::pairing::{Bench, RoleReport, itself, median};
use crate::process::{Cores, Program};
use crate::report::{Better, Row};
use crate::udp::DATAGRAM;

/// The results of all runs of the baseline.
///
/// The runs alternate with those of the implementations, so that a change in the machine's load affects all of them.
#[derive(Debug, Default)]
pub(crate) struct UdpBaseline {
    /// Datagrams of 1,400 bytes per second from one socket to another, with one datagram per call.
    floods: Vec<f64>,
    /// Datagrams of 1,400 bytes per second, with many datagrams per call.
    batched: Vec<f64>,
    /// Round trips of 64 bytes between tokio sockets.
    round_trips: Vec<RoleReport>,
    /// The median round-trip time of each short measurement between other runs, in microseconds.
    wake_ups: Vec<f64>,
}

impl UdpBaseline {
    /// Runs one flood with and one without batching, and measures how fast the machine wakes up a task.
    pub(crate) fn flood(&mut self, bench: &Bench, effort: Effort) -> Result<()> {
        let millis = if effort == Effort::Quick { "20" } else { "500" };
        let arrived =
            |more: &[&str]| flood(bench.cores, bench.limit, &[&["--millis", millis], more].concat());
        self.floods.push(arrived(&[])?);
        self.batched.push(arrived(&["--batched"])?);
        self.wake_up(bench, effort)
    }

    /// Runs one measurement of `count` round trips.
    pub(crate) fn round_trip(&mut self, bench: &Bench, count: u32) -> Result<()> {
        let report = round_trip(bench, count)?;
        self.wake_ups.extend(report.p50_us);
        self.round_trips.push(report);
        Ok(())
    }

    /// Measures how fast the machine wakes up a task, with a few round trips.
    pub(crate) fn wake_up(&mut self, bench: &Bench, effort: Effort) -> Result<()> {
        let count = if effort == Effort::Quick { 50 } else { 1_000 };
        self.wake_ups.extend(round_trip(bench, count)?.p50_us);
        Ok(())
    }

    pub(crate) fn datagrams(&self) -> Option<f64> {
        median(self.floods.iter().copied())
    }

    pub(crate) fn megabytes(&self) -> Option<f64> {
        self.datagrams().map(|datagrams| datagrams * DATAGRAM as f64 / 1e6)
    }

    pub(crate) fn p50_us(&self) -> Option<f64> {
        median(self.round_trips.iter().filter_map(|round_trip| round_trip.p50_us))
    }

    pub(crate) fn p99_us(&self) -> Option<f64> {
        median(self.round_trips.iter().filter_map(|round_trip| round_trip.p99_us))
    }

    /// Returns the median round-trip time in microseconds. A round trip needs two wake-ups.
    pub(crate) fn wake_up_us(&self) -> Option<f64> {
        median(self.wake_ups.iter().copied())
    }

    /// Returns one row for the floods without batching and one for those with batching.
    pub(crate) fn flood_rows(&self) -> Vec<Row> {
        let batched = median(self.batched.iter().copied());
        let rows = [("udp_flood", self.datagrams()), ("udp_flood_batched", batched)];
        let row = |(name, value)| Some(Row::new(name, value?, "datagrams/s", Better::Higher));
        rows.into_iter().filter_map(row).collect()
    }

    /// Returns rows of round trips with these names and values.
    pub(crate) fn round_trip_rows<const ROWS: usize>(
        rows: [(&'static str, Option<f64>); ROWS],
    ) -> impl Iterator<Item = Row> {
        let row = |(name, value)| Some(Row::new(name, value?, "µs", Better::Lower));
        rows.into_iter().filter_map(row)
    }
}

fn udp(arguments: &[&str]) -> Result<Command> {
    let mut command = itself()?;
    command.arg("udp").args(arguments);
    Ok(command)
}

/// Runs a flood and returns the number of datagrams that arrive per second.
///
/// `options` are additional arguments for the program in the role [`Flood`](crate::udp::Flood).
pub(crate) fn flood(cores: Cores, limit: Duration, options: &[&str]) -> Result<f64> {
    let sink = Program::start(udp(&["sink"])?, cores.receiver, limit)?;
    let address = format!("127.0.0.1:{}", sink.port()?);
    let mut command = udp(&["flood", &address])?;
    command.args(options);
    let mut flood = Program::start(command, cores.sender, limit)?;
    flood.connected()?;
    flood.go()?;
    flood.line()?;
    let report: RoleReport = serde_json::from_str(&sink.line()?)?;
    Ok(report.messages as f64 / report.seconds.max(1e-6))
}

fn round_trip(bench: &Bench, count: u32) -> Result<RoleReport> {
    let echo = Program::start(udp(&["echo"])?, bench.cores.receiver, bench.limit)?;
    let address = format!("127.0.0.1:{}", echo.port()?);
    let command = udp(&["pingpong", &address, "--count", &count.to_string()])?;
    let mut client = Program::start(command, bench.cores.sender, bench.limit)?;
    client.connected()?;
    client.go()?;
    Ok(serde_json::from_str(&client.line()?)?)
}
