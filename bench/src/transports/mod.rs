//! Compares the transports of the npm package over a simulated path with latency and loss.
//!
//! Page and relay run in separate network namespaces.

mod connect;
pub(crate) mod game_server;
mod network;
mod profile;
mod table;

use std::net::UdpSocket;
use std::path::{Path as FilePath, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use rakwire::sim::{Bottleneck, Conditions};

use self::network::{FAR, NEAR, on_machine};
use self::profile::Profile;
use self::table::{HEAD, Measured, Report, Row};
use crate::pairing::itself;
use crate::path::Path;
use crate::process::{Cores, Program};
use crate::{environment, publish, report};

const BEGIN: &str = "<!-- figures: written by `cargo xtask bench transports --publish` -->";
const BEGIN_CONNECTING: &str =
    "<!-- figures of times to connect: written by `cargo xtask bench transports --publish` -->";

/// The time limit of one measurement, including the start of a browser.
const LONGEST: Duration = Duration::from_secs(300);
/// The latency of the path in each direction, half of the round-trip time.
const LATENCY: Duration = Duration::from_millis(25);
/// The rate of the path in each direction, that of a slow home connection.
const BITS_PER_SECOND: u64 = 20_000_000;
const QUEUE: Duration = Duration::from_millis(50);
const QUICK_CONNECTIONS: u32 = 3;
const LOSSES: [f64; 4] = [0.0, 0.01, 0.05, 0.15];
/// The measured transports. The WebSocket is measured a second time with the loss recovery for datagrams.
const TRANSPORTS: [(&str, Profile); 4] = [
    ("websocket", Profile::Carrier),
    ("websocket", Profile::Datagrams),
    ("webtransport", Profile::Carrier),
    ("webrtc", Profile::Carrier),
];

/// Measure the transports of the npm package over a path with latency and loss.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Measure one loss rate briefly, as a smoke test
    #[arg(long)]
    quick: bool,
    /// The number of runs of each row; the report has their medians
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Measure only rows with this loss rate, in percent
    #[arg(long, value_name = "PERCENT")]
    loss: Option<f64>,
    /// Measure only rows of this transport
    #[arg(long, value_name = "NAME", value_parser = ["websocket", "webtransport", "webrtc"])]
    transport: Option<String>,
    /// Measure only the time to connect
    #[arg(long, conflicts_with_all = ["loss", "transport"])]
    connect: bool,
    /// Write the tables into docs/transports.md
    #[arg(long, conflicts_with_all = ["quick", "loss", "transport", "connect"])]
    publish: bool,
    /// The path of the report, by default target/bench/transports.json, and transports-quick.json beside it for a quick measurement
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let mut report = Report { environment: environment::begin(options.runs())?, ..Report::default() };
    "cargo xtask bench transports".clone_into(&mut report.environment.command);
    report.environment.peers.clear();
    if !options.connect {
        measure_losses(options, &mut report)?;
    }
    if options.loss.is_none() && options.transport.is_none() {
        measure_connecting(options, &mut report)?;
    }
    environment::end(&mut report.environment)?;
    report::write(&report, &report::path(options.report.as_deref(), "transports", options.quick))?;
    if options.publish {
        let document = FilePath::new("docs/transports.md");
        publish::write_figures(document, BEGIN, &report.losses())?;
        publish::write_figures(document, BEGIN_CONNECTING, &report.times_to_connect())?;
    }
    Ok(())
}

impl Options {
    const fn runs(&self) -> u32 {
        if self.quick { 1 } else { self.runs }
    }
}

fn measure_losses(options: &Options, report: &mut Report) -> Result<()> {
    let (losses, millis) = if options.quick { (&LOSSES[2..3], 1_500) } else { (&LOSSES[..], 6_000) };
    let chosen = |loss: f64| options.loss.is_none_or(|percent| (percent / 100.0 - loss).abs() < 1e-9);
    anyhow::ensure!(
        losses.iter().any(|&loss| chosen(loss)),
        "--loss must be 0, 1, 5 or 15, and with --quick it must be 5"
    );
    println!("{HEAD}");
    for &loss in losses.iter().filter(|&&loss| chosen(loss)) {
        for (transport, profile) in TRANSPORTS {
            if options.transport.as_ref().is_some_and(|name| name != transport) {
                continue;
            }
            let measured =
                (1..=options.runs()).map(|seed| measure(transport, profile, loss, seed.into(), millis));
            let row = Row::new(transport, profile, loss, measured.collect::<Result<_>>()?);
            println!("{}", row.line());
            report.rows.push(row);
        }
    }
    Ok(())
}

fn measure_connecting(options: &Options, report: &mut Report) -> Result<()> {
    let connections = if options.quick { QUICK_CONNECTIONS } else { connect::CONNECTIONS };
    println!("{}", connect::HEAD);
    for (transport, udp_blocked) in connect::CASES {
        let row = measure_case(transport, udp_blocked, connections)?;
        println!("{}", row.line());
        report.connecting.push(row);
    }
    Ok(())
}

/// Opens `connections` connections over a path without losses, each with a fresh browser profile.
fn measure_case(transport: &'static str, udp_blocked: bool, connections: u32) -> Result<connect::Row> {
    let cores = Cores::choose()?;
    // Datagrams to the port of this socket are lost without an ICMP error, which simulates blocked UDP.
    let (far, (servers, silent)) =
        on_machine(FAR, || Ok((servers(cores.receiver)?, UdpSocket::bind((FAR, 0))?)))?;
    let (relay, connections) = (servers.relay.clone(), connections.to_string());
    let port = silent.local_addr()?.port().to_string();
    let mut arguments = vec![relay.as_str(), transport, &connections];
    arguments.extend(udp_blocked.then_some(port.as_str()));
    let (near, page) = on_machine(NEAR, || script(cores.sender, "wasm/bench/connect.mjs", &arguments))?;
    let conditions =
        Conditions { latency: connect::LATENCY, bottleneck: bottleneck(), ..Conditions::default() };
    let _path = Path::start(near, far, conditions, 1);
    let line = page.line().with_context(|| format!("connecting by {transport}"))?;
    connect::Row::read(transport, udp_blocked, &line)
}

fn bottleneck() -> Option<Bottleneck> {
    Some(Bottleneck::with_queue_of(BITS_PER_SECOND, QUEUE))
}

/// Runs one measurement with a new browser and a new path.
fn measure(transport: &str, profile: Profile, loss: f64, seed: u64, millis: u32) -> Result<Measured> {
    let cores = Cores::choose()?;
    let (far, servers) = on_machine(FAR, || servers(cores.receiver))?;
    let relay = servers.relay.clone();
    let millis = millis.to_string();
    let arguments = [relay.as_str(), transport, profile.name(), &millis];
    let (near, page) = on_machine(NEAR, || script(cores.sender, "wasm/bench/transports.mjs", &arguments))?;
    let conditions = Conditions { loss, latency: LATENCY, bottleneck: bottleneck(), ..Conditions::default() };
    let _path = Path::start(near, far, conditions, seed);
    let line = page.line().with_context(|| format!("{transport} with a loss of {loss}"))?;
    serde_json::from_str(&line).with_context(|| format!("not the result of a measurement: {line}"))
}

/// A game server with a relay in front of it.
struct Servers {
    relay: String,
    _programs: [Program; 2],
}

fn servers(core: usize) -> Result<Servers> {
    let mut game = itself()?;
    game.arg("transports-game");
    let game = Program::start(game, core, LONGEST)?;
    let port = game.port()?;
    let path = std::env::var_os("RAKWIRE_RELAY_BIN").unwrap_or_else(|| "target/release/rakwire-relay".into());
    let mut relay = Command::new(path);
    relay.env_remove("RUST_LOG").args([
        "--listen",
        &format!("{FAR}:0"),
        "--target",
        &format!("game=127.0.0.1:{port}"),
    ]);
    relay.args(["--allow-any-origin", "--exempt", "10.77.0.0/24", "--log-level", "error"]);
    let relay = Program::start(relay, core, LONGEST)?;
    let line = relay.line()?;
    let address = line.strip_prefix("listening on http://").with_context(|| {
        format!("expected the line \"listening on http://ADDRESS\", but the relay printed {line:?}")
    })?;
    Ok(Servers { relay: address.trim().to_owned(), _programs: [game, relay] })
}

fn script(core: usize, path: &str, arguments: &[&str]) -> Result<Program> {
    let mut node = Command::new("node");
    node.arg(path).args(arguments);
    Program::start(node, core, LONGEST)
}
