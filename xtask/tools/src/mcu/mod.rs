//! `cargo xtask mcu`: the firmware in QEMU, with real servers on the host.

pub(crate) mod bench;
mod games;
mod scenarios;

use anyhow::{Result, bail};
use clap::Args;
use serde_json::json;

use self::scenarios::{FOREIGN, Host};
use xtask::artifacts;
use xtask::firmware::{self, EMULATED};
use xtask::setup::{Need, PEERS};
use xtask::shell::Shell;
use xtask::targets::THUMB_M4;
use xtask::tasks;

/// The needs of the runs in QEMU in addition to the programs on the host.
const NEEDS: [Need; 4] = [Need::FirmwareTargets, Need::Qemu, Need::DefmtPrint, Need::Peers];

/// The maximum stack use in bytes: the measured use in the scenarios, and a reserve for interrupts.
const MAX_STACK: f64 = 12_288.0;
/// The maximum stack use with secure connections, because their handshake computes on an elliptic curve.
const MAX_STACK_SECURE: f64 = 20_480.0;

/// Build options of the scenarios with secure connections.
const SECURE_SCENARIOS: [&str; 4] = ["--bin", "secure-scenarios", "--features", "secure"];

/// The options of firmware runs.
#[derive(Args)]
pub(crate) struct Options {
    /// Run every scenario, and print one line of JSON
    #[arg(long)]
    smoke: bool,
    /// Repeat the scenarios this many times
    #[arg(long, value_name = "N", default_value_t = 1, requires = "smoke")]
    repeat: u32,
    /// Afterwards exchange messages in real time for this many minutes
    #[arg(long, value_name = "MINUTES", requires = "smoke")]
    soak: Option<u64>,
}

/// `cargo xtask mcu`.
pub(crate) fn command(shell: &Shell, options: &Options) -> Result<()> {
    if !options.smoke {
        bail!("nothing to do; pass --smoke to run every scenario in QEMU");
    }
    tasks::set_up(shell, &[&NEEDS[..], &[Need::Programs]].concat())?;
    run(shell, options)
}

/// Runs the built programs.
fn run(result: &Shell, options: &Options) -> Result<()> {
    let shell = &result.with_free_stdout();
    let programs = artifacts::built_programs(shell)?;
    let folder = firmware::build(shell, EMULATED, THUMB_M4, &[])?;
    firmware::build(shell, EMULATED, THUMB_M4, &SECURE_SCENARIOS)?;
    let peers = shell.path(PEERS);
    let host =
        Host { shell, firmware: folder, rakwire: programs.rakwire, snowfight: programs.snowfight, peers };
    for run in 0..options.repeat {
        let line = smoke(&host)?;
        shell.note(format_args!("mcu: run {} of {} passed", run + 1, options.repeat));
        if run + 1 == options.repeat && options.soak.is_none() {
            result.print(line);
        }
    }
    if let Some(minutes) = options.soak {
        let soak = host.soak(minutes)?;
        result.print(json!({
            "ok": true,
            "minutes": minutes,
            "round_trips": soak.round_trips as u64,
            "rtt_us_median": soak.rtt_us_median as u64,
            "loss_percent": rounded(soak.loss_percent),
        }));
    }
    Ok(())
}

/// The stage of `cargo xtask ci`.
pub(crate) fn stage(shell: &Shell) -> Result<()> {
    bench::instructions(shell, false)?;
    run(shell, &Options { smoke: true, repeat: 1, soak: None })
}

/// Runs every scenario, and returns the result as a line of JSON.
fn smoke(host: &Host<'_>) -> Result<String> {
    let clean = host.clean()?;
    if clean.round_trips < 2_000.0 {
        bail!("there were only {} round trips", clean.round_trips);
    }
    let lossy = host.lossy()?;
    let secure = host.secure()?;
    let fixed = host.fixed_address()?;
    let other_version = host.other_version()?;
    let own = [&clean, &lossy, &secure, &fixed, &other_version];
    let mut round_trips: f64 = own.iter().map(|exchange| exchange.round_trips).sum();
    let mut foreign = Vec::new();
    for peer in FOREIGN {
        let exchange = host.foreign(peer)?;
        round_trips += exchange.round_trips;
        foreign.push(peer.0);
    }
    let stack = clean.stack.max(lossy.stack).max(host.games()?);
    if stack > MAX_STACK {
        bail!("{stack} bytes of stack were used, more than {MAX_STACK}");
    }
    if secure.stack > MAX_STACK_SECURE {
        bail!("{} bytes of stack were used, more than {MAX_STACK_SECURE}", secure.stack);
    }
    host.others()?;
    let result = json!({
        "ok": true,
        "round_trips": round_trips as u64,
        "rtt_us_median": clean.rtt_us_median as u64,
        "loss_percent": rounded(lossy.loss_percent),
        "stack_bytes": stack as u64,
        "stack_bytes_secure": secure.stack as u64,
        "foreign": foreign,
    });
    Ok(result.to_string())
}

fn rounded(number: f64) -> f64 {
    (number * 10.0).round() / 10.0
}
