//! Measurements with the program of the crate `rakwire-bench`, built with optimisation.

use anyhow::Result;
use clap::{Args, Subcommand};

use crate::mcu;
use xtask::artifacts;
use xtask::fields;
use xtask::setup::{self, Need};
use xtask::shell::Shell;
use xtask::targets::WASM;
use xtask::tasks;

/// The report of a quick measurement, which keeps that of a full session unchanged.
const QUICK_REPORT: &str = "target/bench/quick.json";

/// The options of measurements.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Options {
    #[command(subcommand)]
    part: Option<Part>,
    /// Measure every row once, small and with two peers: a functional test without meaningful timings
    #[arg(long)]
    quick: bool,
    /// Write docs/performance.md and its plots from the report, if it is complete and from one session
    #[arg(long, conflicts_with = "quick")]
    publish: bool,
    /// Only count the instructions of the hot paths and write their table
    #[arg(long, conflicts_with_all = ["quick", "publish"])]
    instructions: bool,
    /// Measure only rows with one of these in their names
    #[arg(long, value_name = "NAME,…", conflicts_with = "instructions")]
    only: Option<String>,
    /// Keep the rows of the last report that are not measured this time
    #[arg(long, requires = "only")]
    keep: bool,
    /// Continue an interrupted session, if the commit and the boot of the machine are the same
    #[arg(long, conflicts_with_all = ["keep", "instructions"])]
    resume: bool,
    /// Number of measurements per pairing; the median is reported
    #[arg(long, value_name = "N", default_value_t = 5)]
    runs: u32,
}

/// Measurements other than those of RakNet on this machine.
#[derive(Subcommand)]
enum Part {
    /// The firmware in QEMU: instructions, and datagrams per second
    Mcu(mcu::bench::Options),
    /// The npm package in Chromium: cost of a message, a busy page with and without a worker, bytes to load
    Npm {
        /// A short run: a functional test
        #[arg(long)]
        quick: bool,
    },
    /// The relay compared with a WebSocket echo: packets per second and core, latency, memory and CPU time of clients
    Relay {
        /// A short run with few clients: a functional test
        #[arg(long)]
        quick: bool,
        /// Number of rounds; the median is reported
        #[arg(long, value_name = "N", default_value_t = 5)]
        runs: u32,
    },
    /// Secure connections compared with plain ones, over loopback; --instructions includes their instruction counts
    Secure {
        /// A short run: a functional test
        #[arg(long)]
        quick: bool,
        /// Number of rounds; the median is reported
        #[arg(long, value_name = "N", default_value_t = 5)]
        runs: u32,
    },
    /// The transports of the npm package over a path with latency and loss. Needs root, Linux and the device
    /// /dev/net/tun
    Transports(Transports),
    /// Libraries other than RakNet with the same workload: quinn, ENet, KCP, renet and GameNetworkingSockets
    Fields {
        /// Everything once and small: a functional test
        #[arg(long, conflicts_with = "publish")]
        quick: bool,
        /// Number of measurements of each; the median is reported
        #[arg(long, value_name = "N", default_value_t = 3)]
        runs: u32,
        /// Only this workload: messages, bulk, unreliable, round-trips, loss-1 or loss-5
        #[arg(long, value_name = "NAME,…")]
        only: Option<String>,
        /// Write the table to docs/alternatives.md
        #[arg(long, conflicts_with = "only")]
        publish: bool,
    },
    /// The server of the snowball fight under load: how many players it can serve
    Game {
        /// Few players for a short time: a functional test
        #[arg(long)]
        quick: bool,
    },
}

#[derive(Args)]
struct Transports {
    /// One loss rate and a short time: a functional test
    #[arg(long)]
    quick: bool,
    /// Number of measurements per row; the median is reported
    #[arg(long, value_name = "N", default_value_t = 3)]
    runs: u32,
    /// Only rows with this loss: 0, 1, 5 or 15
    #[arg(long, value_name = "PERCENT")]
    loss: Option<String>,
    /// Only rows of this transport: websocket, webtransport or webrtc
    #[arg(long, value_name = "NAME")]
    transport: Option<String>,
    /// Only the time to connect
    #[arg(long, conflicts_with_all = ["loss", "transport"])]
    connect: bool,
}

pub(crate) fn command(shell: &Shell, options: &Options) -> Result<()> {
    match &options.part {
        Some(Part::Mcu(options)) => mcu::bench::command(shell, options),
        Some(Part::Game { quick }) => {
            artifacts::fast_programs(shell)?;
            run(shell, if *quick { &["game", "--quick"] } else { &["game"] })
        }
        Some(Part::Relay { quick, runs }) => {
            artifacts::fast_relay(shell)?;
            setup::websockify(shell)?;
            let runs = runs.to_string();
            let args = ["relay", "--runs", &runs].into_iter().chain(quick.then_some("--quick"));
            run(shell, &args.collect::<Vec<_>>())
        }
        Some(Part::Secure { quick, runs }) => {
            let runs = runs.to_string();
            let args = ["secure", "--runs", &runs].into_iter().chain(quick.then_some("--quick"));
            run(shell, &args.collect::<Vec<_>>())
        }
        Some(Part::Fields { quick, runs, only, publish }) => {
            fields::build(shell)?;
            let runs = runs.to_string();
            let mut args = vec!["fields", "--runs", &runs];
            args.extend(quick.then_some("--quick"));
            args.extend(publish.then_some("--publish"));
            args.extend(only.as_deref().into_iter().flat_map(|only| ["--only", only]));
            run(shell, &args)
        }
        Some(Part::Npm { quick }) => npm(shell, *quick),
        Some(Part::Transports(options)) => transports(shell, options),
        None => raknet(shell, options),
    }
}

fn npm(shell: &Shell, quick: bool) -> Result<()> {
    tasks::set_up(shell, &[Need::NpmPackage, Need::Chromium])?;
    artifacts::fast_programs(shell)?;
    let script = ["bench/run.mjs"].into_iter().chain(quick.then_some("--quick"));
    shell.cmd_for(WASM, "wasm", "node", script).run()
}

fn transports(shell: &Shell, options: &Transports) -> Result<()> {
    tasks::set_up(shell, &[Need::NpmPackage, Need::Chromium, Need::IpRoute])?;
    artifacts::fast_relay(shell)?;
    let runs = options.runs.to_string();
    let mut args = vec!["transports", "--runs", &runs];
    args.extend(options.quick.then_some("--quick"));
    args.extend(options.connect.then_some("--connect"));
    for (name, value) in [("--loss", &options.loss), ("--transport", &options.transport)] {
        args.extend(value.as_deref().into_iter().flat_map(|value| [name, value]));
    }
    run(shell, &args)
}

fn raknet(shell: &Shell, options: &Options) -> Result<()> {
    if options.instructions {
        tasks::set_up(shell, &[Need::Valgrind])?;
        return run(shell, &["instructions", "--write"]);
    }
    tasks::set_up(shell, &[Need::Peers])?;
    let runs = options.runs.to_string();
    let mut args = vec!["run", "--runs", &runs];
    if options.quick {
        args.extend(["--quick", "--report", QUICK_REPORT]);
    }
    if let Some(only) = &options.only {
        args.extend(["--only", only]);
    }
    args.extend(options.keep.then_some("--keep"));
    args.extend(options.resume.then_some("--resume"));
    run(shell, &args)?;
    if options.publish { run(shell, &["publish"]) } else { Ok(()) }
}

/// Checks that the hot paths take no more instructions than in the committed table.
pub(crate) fn instructions(shell: &Shell) -> Result<()> {
    run(shell, &["instructions"])
}

/// Checks that the commands work.
pub(crate) fn smoke(shell: &Shell) -> Result<()> {
    run(shell, &["run", "--quick", "--report", QUICK_REPORT])?;
    run(shell, &["secure", "--quick", "--runs", "1"])?;
    fields::build(shell)?;
    run(shell, &["fields", "--quick", "--report", "target/bench/fields-quick.json"])?;
    artifacts::fast_relay(shell)?;
    setup::websockify(shell)?;
    run(shell, &["relay", "--quick", "--report", "target/bench/relay-quick.json"])
}

fn run(shell: &Shell, args: &[&str]) -> Result<()> {
    let program = ["run", "--quiet", "--release", "--package", "rakwire-bench", "--"];
    shell.cmd("cargo", program.into_iter().chain(args.iter().copied())).run()
}
