//! Measurements with the program of the crate `rakwire-bench`, built with optimisation.

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};

use crate::mcu;
use xtask::artifacts;
use xtask::fields;
use xtask::setup::{self, Need};
use xtask::shell::Shell;
use xtask::targets::WASM;
use xtask::tasks;

/// The report of a quick measurement, which keeps that of a full session unchanged.
const QUICK_REPORT: &str = "target/bench/quick.json";

/// The options of measurements. The program refuses those that a measurement does not have.
#[derive(Args)]
pub(crate) struct Options {
    /// The measurement: by default this crate compared with other RakNet implementations
    part: Option<Part>,
    /// Measure everything once and small: a functional test without meaningful timings
    #[arg(long)]
    quick: bool,
    /// Write the document and its plots from the report, if it is complete and from one session
    #[arg(long, conflicts_with = "quick")]
    publish: bool,
    /// Only count the instructions of the hot paths and write their table
    #[arg(long, conflicts_with_all = ["part", "quick", "publish", "only", "resume"])]
    instructions: bool,
    /// Number of measurements of each row; the median is reported
    #[arg(long, value_name = "N")]
    runs: Option<String>,
    /// Measure only rows with one of these in their names
    #[arg(long, value_name = "NAME,…")]
    only: Option<String>,
    /// Keep the rows of the last report that are not measured this time
    #[arg(long, requires = "only")]
    keep: bool,
    /// Continue an interrupted session, if the commit and the boot of the machine are the same
    #[arg(long, conflicts_with = "keep")]
    resume: bool,
    /// Measure only rows of `transports` with this loss: 0, 1, 5 or 15
    #[arg(long, value_name = "PERCENT")]
    loss: Option<String>,
    /// Measure only rows of `transports` with this one: websocket, webtransport or webrtc
    #[arg(long, value_name = "NAME")]
    transport: Option<String>,
    /// Measure only the time to connect of `transports`
    #[arg(long)]
    connect: bool,
    /// Rewrite the committed table of `mcu` instead of comparing with it
    #[arg(long)]
    update: bool,
}

/// Measurements other than those of RakNet on this machine.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// The firmware in QEMU: instructions, and datagrams per second
    Mcu,
    /// The npm package in Chromium: cost of a message, a busy page with and without a worker, bytes to load
    Npm,
    /// The relay compared with a WebSocket echo: packets per second and core, latency, memory and CPU time of clients
    Relay,
    /// Secure connections compared with plain ones, over loopback; --instructions includes their instruction counts
    Secure,
    /// The transports of the npm package over a path with latency and loss. Needs root, Linux and /dev/net/tun
    Transports,
    /// Libraries other than RakNet with the same workload: quinn, ENet, KCP, renet and GameNetworkingSockets
    Fields,
    /// The server of the snowball fight under load: how many players it can serve
    Game,
}

impl Options {
    /// Returns those that the program gets too.
    fn passed_on(&self) -> Vec<&str> {
        let flags = [
            ("--quick", self.quick),
            ("--keep", self.keep),
            ("--resume", self.resume),
            ("--connect", self.connect),
            // The one for RakNet is a separate command.
            ("--publish", self.publish && self.part.is_some()),
            ("--update", self.update),
        ];
        let values = [
            ("--runs", &self.runs),
            ("--only", &self.only),
            ("--loss", &self.loss),
            ("--transport", &self.transport),
        ];
        let mut args: Vec<_> =
            flags.into_iter().filter(|(_, is_set)| *is_set).map(|(flag, _)| flag).collect();
        for (name, value) in values {
            args.extend(value.iter().flat_map(|value| [name, value]));
        }
        args
    }
}

/// `cargo xtask bench`.
pub(crate) fn command(shell: &Shell, options: &Options) -> Result<()> {
    let mut args = options.passed_on();
    match options.part {
        Some(Part::Mcu) if args.iter().all(|arg| *arg == "--update") => {
            return mcu::bench::command(shell, options.update);
        }
        Some(Part::Mcu) => bail!("`bench mcu` has no option but --update"),
        Some(Part::Npm) if args.iter().any(|arg| *arg != "--quick") => {
            bail!("`bench npm` has no option but --quick")
        }
        Some(Part::Npm) => {
            tasks::set_up(shell, &[Need::NpmPackage, Need::Chromium])?;
            artifacts::fast_programs(shell)?;
            args.insert(0, "bench/run.mjs");
            return shell.cmd_for(WASM, "wasm", "node", args).run();
        }
        Some(Part::Relay) => {
            artifacts::fast_relay(shell)?;
            setup::websockify(shell)?;
            args.insert(0, "relay");
        }
        Some(Part::Secure) => args.insert(0, "secure"),
        Some(Part::Transports) => {
            tasks::set_up(shell, &[Need::NpmPackage, Need::Chromium, Need::IpRoute])?;
            artifacts::fast_relay(shell)?;
            args.insert(0, "transports");
        }
        Some(Part::Fields) => {
            fields::build(shell)?;
            args.insert(0, "fields");
        }
        Some(Part::Game) => {
            artifacts::fast_programs(shell)?;
            args.insert(0, "game");
        }
        None if options.instructions => {
            tasks::set_up(shell, &[Need::Valgrind])?;
            args = vec!["instructions", "--write"];
        }
        None => {
            tasks::set_up(shell, &[Need::Peers])?;
            args.insert(0, "run");
            args.extend(options.quick.then_some(["--report", QUICK_REPORT]).into_iter().flatten());
        }
    }
    run(shell, &args)?;
    if options.publish && options.part.is_none() { run(shell, &["publish"]) } else { Ok(()) }
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
