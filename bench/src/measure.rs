//! The command that measures everything in one session.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::core_only::{self, Effort};
use crate::environment;
use crate::idle;
use crate::pairing::{Bench, Network, Pairing, Pattern, Run, Workload, median};
use crate::process::Cores;
use crate::report::{Best, Better, Entry, Report, Row};
use crate::udp_baseline::UdpBaseline;

/// Messages of 100 bytes in a full datagram: each has 10 bytes of headers, the datagram 4.
const MESSAGES_PER_DATAGRAM: f64 = 13.0;

/// Measure everything and print a table.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Measure every row once, small and with two peers, as a smoke test
    #[arg(long)]
    quick: bool,
    /// Measure only rows whose names contain one of these
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// Keep the rows of the report that are not measured this time
    #[arg(long, requires = "only")]
    keep: bool,
    /// How many times each pairing is measured; the median counts
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Where the report goes
    #[arg(long, value_name = "FILE", default_value = "target/bench/report.json")]
    report: PathBuf,
    /// Where the programs around other RakNet implementations are
    #[arg(long, value_name = "FOLDER", default_value = "target/interop/bin")]
    peers: PathBuf,
}

/// What is computed from a run.
#[derive(Clone, Copy, Debug)]
enum Figure {
    MessagesPerSecond,
    MegabytesPerSecond,
    Median,
    Percentile99,
}

impl Figure {
    const fn unit(self) -> &'static str {
        match self {
            Self::MessagesPerSecond => "messages/s",
            Self::MegabytesPerSecond => "MB/s",
            Self::Median | Self::Percentile99 => "µs",
        }
    }

    const fn better(self) -> Better {
        match self {
            Self::MessagesPerSecond | Self::MegabytesPerSecond => Better::Higher,
            Self::Median | Self::Percentile99 => Better::Lower,
        }
    }

    fn of(self, run: &Run, workload: &Workload) -> Option<f64> {
        let count = f64::from(workload.count);
        match self {
            Self::MessagesPerSecond => Some(count / run.seconds),
            Self::MegabytesPerSecond => Some(count * workload.size as f64 / 1e6 / run.seconds),
            Self::Median => run.p50_us,
            Self::Percentile99 => run.p99_us,
        }
    }
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let runs = if options.quick { 1 } else { options.runs };
    let limit = Duration::from_secs(if options.quick { 8 } else { 60 });
    let bench = Bench { peers: options.peers.clone(), cores: Cores::choose()?, runs, limit };
    let mut session = Session {
        bench,
        options,
        effort: if options.quick { Effort::Quick } else { Effort::Full },
        report: Report::default(),
    };
    session.report.environment = environment::begin(runs)?;
    session.measure()?;
    environment::end(&mut session.report.environment)?;
    if options.keep {
        session.report.keep(Report::read(&options.report).context("there is no report to keep rows of")?);
    }
    let report = &session.report;
    report.write(&options.report)?;
    print!("{}", report.table());
    let (met, all) = report.goals();
    println!(
        "{met} of {all} goals are met; the load was {:?}; {}",
        report.environment.load,
        options.report.display()
    );
    let failed = report.rows.iter().filter(|row| !row.value.is_finite()).map(|row| row.name.as_str());
    let failed: Vec<&str> = failed.collect();
    if failed.is_empty() { Ok(()) } else { bail!("no value for our own pairing in {}", failed.join(", ")) }
}

struct Session<'o> {
    bench: Bench,
    options: &'o Options,
    effort: Effort,
    report: Report,
}

impl Session<'_> {
    fn wants(&self, name: &str) -> bool {
        is_selected(&self.options.only, name)
    }

    fn count(&self, full: u32) -> u32 {
        if self.options.quick { (full / 50).max(1) } else { full }
    }

    fn measure(&mut self) -> Result<()> {
        let mut baseline = UdpBaseline::default();
        self.throughput(&mut baseline)?;
        self.round_trips(&mut baseline)?;
        self.report.rows.splice(..0, baseline.rows());
        self.losses();
        if self.wants("core") {
            self.report.rows.extend(core_only::core(self.effort, self.bench.runs));
        }
        if self.wants("fair") {
            self.report.rows.extend(core_only::fairness(self.effort));
        }
        if self.wants("idle") {
            self.report.rows.extend(idle::rows(&self.bench, self.effort)?);
        }
        Ok(())
    }

    fn throughput(&mut self, all: &mut UdpBaseline) -> Result<()> {
        let loopback =
            |count, size| Workload { pattern: Pattern::Blast, count, size, network: Network::Loopback };
        if self.wants("messages_100b") {
            let workload = loopback(self.count(100_000), 100);
            let mut baseline = UdpBaseline::default();
            let entries =
                self.rounds("messages_100b", &workload, || baseline.flood(&self.bench, self.effort))?;
            let row = row("messages_100b", &entries, &workload, Figure::MessagesPerSecond);
            let limit = baseline.datagrams().map(|datagrams| datagrams * MESSAGES_PER_DATAGRAM);
            self.report.rows.push(
                row.compared_with_baseline(limit).goal_relative_to_peer(3.0).goal_relative_to_baseline(0.5),
            );
            all.merge(baseline);
        }
        for (name, count, size) in [("bulk_10mb", 1, 10_000_000), ("bulk_10kb", self.count(1_000), 10_000)] {
            if self.wants(name) {
                let workload = loopback(count, size);
                let mut baseline = UdpBaseline::default();
                let entries = self.rounds(name, &workload, || baseline.flood(&self.bench, self.effort))?;
                let row = row(name, &entries, &workload, Figure::MegabytesPerSecond);
                let row = row.compared_with_baseline(baseline.megabytes());
                self.report.rows.push(row.goal_relative_to_peer(2.0).goal_relative_to_baseline(0.65));
                all.merge(baseline);
            }
        }
        Ok(())
    }

    fn round_trips(&mut self, all: &mut UdpBaseline) -> Result<()> {
        if !self.wants("pingpong_64b") {
            return Ok(());
        }
        let count = self.count(10_000);
        let workload = Workload { pattern: Pattern::PingPong, count, size: 64, network: Network::Loopback };
        let mut baseline = UdpBaseline::default();
        let entries =
            self.rounds("pingpong_64b", &workload, || baseline.round_trip(&self.bench, self.effort))?;
        let median = row("pingpong_64b", &entries, &workload, Figure::Median)
            .compared_with_baseline(baseline.p50_us());
        self.report.rows.push(median.goal_relative_to_peer(1.0).goal_relative_to_baseline(1.25));
        let p99 = row("pingpong_64b_p99", &entries, &workload, Figure::Percentile99);
        self.report.rows.push(p99.compared_with_baseline(baseline.p99_us()).goal_relative_to_peer(1.0));
        all.merge(baseline);
        Ok(())
    }

    fn losses(&mut self) {
        for (percent, wanted) in [(0_u8, 1.0), (1, 3.0), (5, 3.0)] {
            let name = format!("loss_{percent}");
            if !self.wants(&name) {
                continue;
            }
            let network = Network::Lossy(f64::from(percent) / 100.0);
            let workload =
                Workload { pattern: Pattern::Blast, count: self.count(20_000), size: 100, network };
            let entries = self.entries(&name, &workload);
            let rate = row(&name, &entries, &workload, Figure::MessagesPerSecond);
            self.report.rows.push(rate.goal_relative_to_peer(wanted));
            let p99 = row(&format!("{name}_p99"), &entries, &workload, Figure::Percentile99);
            self.report.rows.push(p99);
        }
    }

    fn pairings(&self) -> impl Iterator<Item = Pairing> + use<> {
        let effort = self.effort;
        let quick = |pairing: &Pairing| [pairing.client, pairing.server].iter().all(|peer| peer.is_quick());
        Pairing::all().filter(move |pairing| effort == Effort::Full || quick(pairing))
    }

    /// Measures a workload in rounds: in every round the `baseline` and each pairing once.
    fn rounds(
        &self,
        name: &str,
        workload: &Workload,
        mut baseline: impl FnMut() -> Result<()>,
    ) -> Result<Vec<(Pairing, Result<Vec<Run>>)>> {
        let mut entries: Vec<_> = self.pairings().map(|pairing| (pairing, Ok(Vec::new()))).collect();
        for round in 0..self.bench.runs {
            baseline()?;
            for (pairing, found) in &mut entries {
                let Ok(runs) = found else { continue };
                match self.bench.run(*pairing, workload, round.into()) {
                    Ok(run) => runs.push(run),
                    Err(error) => *found = Err(error),
                }
            }
        }
        entries.iter().for_each(|(pairing, runs)| print_result(name, *pairing, runs));
        Ok(entries)
    }

    /// Measures a workload in one pairing after another.
    fn entries(&self, name: &str, workload: &Workload) -> Vec<(Pairing, Result<Vec<Run>>)> {
        let measure = |pairing| {
            let runs = self.bench.runs(pairing, workload);
            print_result(name, pairing, &runs);
            (pairing, runs)
        };
        self.pairings().map(measure).collect()
    }
}

fn print_result(name: &str, pairing: Pairing, runs: &Result<Vec<Run>>) {
    match runs {
        Ok(runs) => {
            let seconds = median(runs.iter().map(|run| run.seconds)).unwrap_or(0.0);
            eprintln!("{name}: {pairing}: {seconds:.4} s");
        }
        Err(error) => eprintln!("{name}: {pairing}: {error:#}"),
    }
}

/// Whether a row or a group of rows is selected; no selection means all.
fn is_selected(only: &[String], name: &str) -> bool {
    only.is_empty() || only.iter().any(|part| name.contains(part.as_str()) || part.starts_with(name))
}

fn row(name: &str, entries: &[(Pairing, Result<Vec<Run>>)], workload: &Workload, figure: Figure) -> Row {
    let entries: Vec<Entry> = entries
        .iter()
        .map(|(pairing, runs)| match runs {
            Ok(runs) => Entry {
                pairing: *pairing,
                value: median(runs.iter().filter_map(|run| figure.of(run, workload))),
                error: None,
                runs: runs.clone(),
            },
            Err(error) => {
                Entry { pairing: *pairing, value: None, error: Some(format!("{error:#}")), runs: Vec::new() }
            }
        })
        .collect();
    let ours = entries.iter().find(|entry| entry.pairing == Pairing::OURS);
    let value = ours.and_then(|entry| entry.value).unwrap_or(f64::NAN);
    let cpu = ours.and_then(|entry| median(entry.runs.iter().map(|run| run.client_cpu + run.server_cpu)));
    let mut row =
        Row::new(name, value, figure.unit(), figure.better()).compared_with_peer(best(&entries, figure));
    row.cpu_us = cpu.map(|cpu| cpu * 1e6 / f64::from(workload.count));
    row.pairings = entries;
    row
}

/// The best pairing of others.
fn best(entries: &[Entry], figure: Figure) -> Option<Best> {
    let foreign = entries.iter().filter(|entry| entry.pairing.is_foreign());
    let values =
        foreign.filter_map(|entry| Some(Best { name: entry.pairing.to_string(), value: entry.value? }));
    match figure.better() {
        Better::Higher => values.max_by(|a, b| a.value.total_cmp(&b.value)),
        Better::Lower => values.min_by(|a, b| a.value.total_cmp(&b.value)),
    }
}

/// Print the table of an existing report.
#[derive(Debug, Args)]
pub(crate) struct Show {
    #[arg(default_value = "target/bench/report.json")]
    report: PathBuf,
}

pub(crate) fn show(options: &Show) -> Result<()> {
    print!("{}", Report::read(&options.report).context("run `cargo xtask bench` first")?.table());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pairing::Peer;

    fn entry(client: Peer, server: Peer, seconds: &[f64]) -> (Pairing, Result<Vec<Run>>) {
        let runs = seconds.iter().map(|seconds| Run { seconds: *seconds, ..Run::default() });
        (Pairing { client, server }, Ok(runs.collect()))
    }

    #[test]
    fn a_row_is_selected_by_a_part_of_its_name_and_with_its_group() {
        let only = |part: &str| [part.to_owned()];
        assert!(is_selected(&[], "bulk_10mb") && is_selected(&only("bulk"), "bulk_10mb"));
        assert!(is_selected(&only("core_100b"), "core") && !is_selected(&only("core_100b"), "idle"));
    }

    #[test]
    fn a_row_compares_our_median_with_the_best_of_others() {
        let workload = Workload { pattern: Pattern::Blast, count: 100, size: 10, network: Network::Loopback };
        let entries = [
            entry(Peer::Rakwire, Peer::Rakwire, &[1.0, 9.0, 2.0]),
            entry(Peer::Rakwire, Peer::Cpp, &[0.1]),
            entry(Peer::Cpp, Peer::Cpp, &[4.0]),
            entry(Peer::Cpp, Peer::RustRaknet, &[8.0]),
            (Pairing { client: Peer::RustRaknet, server: Peer::Cpp }, Err(anyhow::anyhow!("no"))),
        ];
        let row = row("a", &entries, &workload, Figure::MessagesPerSecond);
        assert_eq!((row.value, row.ratio_to_best_peer), (50.0, Some(2.0)));
        assert_eq!(row.best_peer.map(|best| best.name).as_deref(), Some("cpp to cpp"));
        assert_eq!(row.pairings.iter().filter(|entry| entry.error.is_some()).count(), 1);
    }
}
