//! Measures the relay: packets per second and core, added latency, and the memory and CPU time per client.
//!
//! The relay runs on one core. Its clients and the game server share another.

mod client;
mod game_server;
mod load;
mod measure;
mod programs;
mod returning;
mod rows;
mod socket;
mod table;
pub(crate) mod websocket_echo;
mod websockify;

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;

use self::measure::Measure;
use self::table::Report;
use crate::core_only::Effort;
use crate::process::{Cores, on_core};
use crate::{environment, publish, report};

const BEGIN: &str = "<!-- figures: written by `cargo xtask bench relay --publish` -->";

/// Measure the relay compared with a WebSocket echo and plain UDP.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Measure every row once, briefly and with few clients, as a smoke test
    #[arg(long)]
    quick: bool,
    /// The number of rounds. Each measures every row once, and the report has the medians
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Write the table into docs/relay.md
    #[arg(long, conflicts_with = "quick")]
    publish: bool,
    /// The path of the report, by default target/bench/relay.json, and relay-quick.json beside it for a quick measurement
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let (effort, rounds) = if options.quick { (Effort::Quick, 1) } else { (Effort::Full, options.runs) };
    let cores = Cores::choose()?;
    let mut report = Report { environment: environment::begin(rounds)?, ..Report::default() };
    "cargo xtask bench relay".clone_into(&mut report.environment.command);
    report.environment.peers.clear();
    let measure = Measure::new(cores, effort)?;
    report.rows = on_core(cores.sender, || rows::all(&measure, rounds))??;
    report.ratio_to_websocket_echo = report.rows.first().and_then(|row| row.ratio_to_websocket_echo);
    environment::end(&mut report.environment)?;
    report::write(&report, &report::path(options.report.as_deref(), "relay", options.quick))?;
    let (met, all) = report.goals();
    let text =
        format!("{} {met} of {all} goals are met.\n\n{}", report.environment.sentences(), report.table());
    print!("{text}");
    if options.publish { publish::write_figures(Path::new("docs/relay.md"), BEGIN, &text) } else { Ok(()) }
}
