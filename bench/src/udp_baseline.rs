//! The UDP baseline: what the system's UDP does without RakNet, measured in the same session.

use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use crate::core_only::Effort;
use crate::pairing::{Bench, RoleReport, itself, median};
use crate::process::{Cores, Program};
use crate::report::{Better, Row};
use crate::udp::DATAGRAM;

/// The results of the runs. They are interleaved with the runs of the implementations that are compared with them, so
/// that a machine that is slow for a while is slow for all of them.
#[derive(Debug, Default)]
pub(crate) struct UdpBaseline {
    /// Full datagrams per second from one socket to another, one call each.
    floods: Vec<f64>,
    /// The same with many datagrams per call.
    batched: Vec<f64>,
    /// Round trips of 64 bytes on tokio.
    round_trips: Vec<RoleReport>,
}

impl UdpBaseline {
    /// Measures once how many datagrams arrive per second.
    pub(crate) fn flood(&mut self, bench: &Bench, effort: Effort) -> Result<()> {
        let millis = if effort == Effort::Quick { "20" } else { "500" };
        let arrived =
            |more: &[&str]| flood(bench.cores, bench.limit, &[&["--millis", millis], more].concat());
        self.floods.push(arrived(&[])?);
        self.batched.push(arrived(&["--batched"])?);
        Ok(())
    }

    /// Measures once how long round trips take.
    pub(crate) fn round_trip(&mut self, bench: &Bench, effort: Effort) -> Result<()> {
        let count = if effort == Effort::Quick { "200" } else { "10000" };
        self.round_trips.push(round_trip(bench, count)?);
        Ok(())
    }

    /// Adds the runs of another baseline.
    pub(crate) fn merge(&mut self, other: Self) {
        self.floods.extend(other.floods);
        self.batched.extend(other.batched);
        self.round_trips.extend(other.round_trips);
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

    /// The rows of these results.
    pub(crate) fn rows(&self) -> Vec<Row> {
        let batched = median(self.batched.iter().copied());
        let rows = [
            ("udp_flood", self.datagrams(), "datagrams/s", Better::Higher),
            ("udp_flood_batched", batched, "datagrams/s", Better::Higher),
            ("udp_pingpong_64b", self.p50_us(), "µs", Better::Lower),
            ("udp_pingpong_64b_p99", self.p99_us(), "µs", Better::Lower),
        ];
        let row = |(name, value, unit, better): (&str, Option<f64>, &str, Better)| {
            Some(Row::new(name, value?, unit, better))
        };
        rows.into_iter().filter_map(row).collect()
    }
}

fn udp(arguments: &[&str]) -> Result<Command> {
    let mut command = itself()?;
    command.arg("udp").args(arguments);
    Ok(command)
}

/// The rate at which a flood arrives, in datagrams per second; `options` are those of the role.
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

fn round_trip(bench: &Bench, count: &str) -> Result<RoleReport> {
    let echo = Program::start(udp(&["echo"])?, bench.cores.receiver, bench.limit)?;
    let address = format!("127.0.0.1:{}", echo.port()?);
    let command = udp(&["pingpong", &address, "--count", count])?;
    let mut client = Program::start(command, bench.cores.sender, bench.limit)?;
    client.connected()?;
    client.go()?;
    Ok(serde_json::from_str(&client.line()?)?)
}
