//! Compares rakwire with other network libraries for games, which all do the same work.

mod library;
mod table;
mod work;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;

use self::library::Library;
use self::table::{Report, Row};
use self::work::{Measured, Work};
use crate::pairing::Bench;
use crate::process::Cores;
use crate::{environment, publish, report};

const BEGIN: &str = "<!-- figures: written by `cargo xtask bench fields --publish` -->";

/// Measure rakwire compared with libraries other than RakNet: quinn, ENet, KCP, renet and GameNetworkingSockets.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Measure everything once with little work, as a smoke test
    #[arg(long, conflicts_with = "publish")]
    quick: bool,
    /// The number of runs of each measurement; the report has their median
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Measure only this work: messages, bulk, unreliable, round-trips, loss-1 or loss-5
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// Write the table into docs/alternatives.md
    #[arg(long, conflicts_with = "only")]
    publish: bool,
    /// The path of the report, by default target/bench/fields.json, and fields-quick.json beside it for a quick measurement
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// The folder with the programs of the other libraries
    #[arg(long, value_name = "FOLDER", default_value = "target/fields")]
    peers: PathBuf,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let runs = if options.quick { 1 } else { options.runs };
    let bench =
        Bench { peers: options.peers.clone(), cores: Cores::choose()?, runs, limit: Duration::from_secs(60) };
    let mut report = Report { environment: environment::begin(runs)?, rows: Vec::new() };
    "cargo xtask bench fields".clone_into(&mut report.environment.command);
    report.environment.peers = library::versions()?;
    for work in Work::all(options.quick) {
        if options.only.is_empty() || options.only.iter().any(|name| name == work.name) {
            report.rows.extend(rows(&bench, &work));
        }
    }
    environment::end(&mut report.environment)?;
    report::write(&report, &report::path(options.report.as_deref(), "fields", options.quick))?;
    let text = report.markdown();
    print!("{text}");
    if options.publish {
        publish::write_figures(Path::new("docs/alternatives.md"), BEGIN, &text)?;
    }
    match report.failures().as_slice() {
        [] => Ok(()),
        failures => bail!("{}", failures.join("; ")),
    }
}

/// Measures one kind of work. Each round measures every library once, so that a change in the machine's load affects
/// all of them.
fn rows(bench: &Bench, work: &Work) -> Vec<Row> {
    let mut all: Vec<(Library, Result<Vec<Measured>>)> = Library::ALL
        .into_iter()
        .filter(|library| library.can(work))
        .map(|library| (library, Ok(Vec::new())))
        .collect();
    for round in 0..bench.runs {
        for (library, found) in &mut all {
            let Ok(runs) = found else { continue };
            match work.measure(bench, || library.command(&bench.peers), round.into()) {
                Ok(measured) => runs.push(measured),
                Err(error) => *found = Err(error),
            }
        }
    }
    for (library, found) in &all {
        if let Err(error) = found {
            eprintln!("{}: {}: {error:#}", work.name, library.name());
        }
    }
    Row::of(work, &all)
}
