//! `cargo xtask mcu`: the firmware in QEMU, with real servers on the host.

mod arena;
pub(crate) mod bench;
mod cable;
mod emulator;
mod scenarios;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use serde_json::json;

use self::arena::Arena;
pub(crate) use self::emulator::Machine;
pub(crate) use self::scenarios::built;
use self::scenarios::{FOREIGN, Host};
use crate::artifacts;
use crate::setup::{self, Need, THUMB_M4, THUMB_M33};
use crate::shell::Shell;

/// Where all of them are built, so that what they share is built once.
pub(crate) const TARGET_DIR: &str = "target/firmware";
/// The firmware for QEMU.
pub(crate) const EMULATED: &str = "embedded/firmware/qemu-mps2";

/// What a machine in QEMU needs.
const MACHINE: [Need; 3] = [Need::FirmwareTargets, Need::Qemu, Need::DefmtPrint];

/// What the runs in QEMU need.
pub(crate) const NEEDS: [Need; 4] = [Need::FirmwareTargets, Need::Qemu, Need::DefmtPrint, Need::Peers];

/// What the stage of the tests needs besides.
pub(crate) const TEST_NEEDS: [Need; 5] =
    [Need::FirmwareTargets, Need::Qemu, Need::DefmtPrint, Need::Peers, Need::HostTests];

/// How long a player may take until it plays.
const JOINS_WITHIN: Duration = Duration::from_secs(60);

/// Bytes of stack, at most: what the painted stack of the scenarios shows, and some more for interrupts.
const MOST_STACK: f64 = 12_288.0;

/// What to do with the firmware.
#[derive(Args)]
pub(crate) struct Options {
    /// Run every scenario, and print one line of JSON.
    #[arg(long)]
    smoke: bool,
    /// Run them so often, one time after the other.
    #[arg(long, value_name = "N", default_value_t = 1, requires = "smoke")]
    repeat: u32,
    /// Then exchange messages for so many minutes in real time.
    #[arg(long, value_name = "MINUTES", requires = "smoke")]
    soak: Option<u64>,
}

/// `cargo xtask mcu`.
pub(crate) fn command(shell: &Shell, options: &Options) -> Result<()> {
    if !options.smoke {
        bail!("say what to do: --smoke runs every scenario in QEMU");
    }
    setup::run(shell, &[&NEEDS[..], &[Need::Programs]].concat())?;
    run(shell, options)
}

/// Runs what was built of the host's side.
fn run(result: &Shell, options: &Options) -> Result<()> {
    let shell = &result.with_free_stdout();
    let programs = artifacts::built_programs(shell)?;
    let folder = build(shell, EMULATED, THUMB_M4, &[])?;
    let firmware = |name| built(&folder, THUMB_M4, name);
    let (scenarios, player) = (firmware("scenarios")?, firmware("player")?);
    let peers = shell.path("target/interop/bin");
    let host = Host { shell, firmware: scenarios, rakwire: programs.rakwire, peers };
    let arena = Arena { shell, firmware: player, server: programs.snowfight };
    for run in 0..options.repeat {
        let line = smoke(&host, &arena)?;
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

/// Lets a player on the emulated board join the game of this server. It plays until the machine is dropped.
pub(crate) fn player(shell: &Shell, server: &str) -> Result<Machine> {
    setup::run(shell, &MACHINE)?;
    let folder = build(shell, EMULATED, THUMB_M4, &["--bin", "player"])?;
    let firmware = built(&folder, THUMB_M4, "player")?;
    let mut machine = Machine::start(shell, &firmware, &[arena::at(server)], &[], JOINS_WITHIN)?;
    machine.wait_for("joined as player")?;
    Ok(machine)
}

/// The stage of `cargo xtask test`.
pub(crate) fn stage(shell: &Shell) -> Result<()> {
    bench::instructions(shell, false)?;
    run(shell, &Options { smoke: true, repeat: 1, soak: None })
}

/// The packages that are no part of the repository's workspace, their targets, and what else is built of them.
const APART: [(&str, &str, &[&str]); 5] = [
    (EMULATED, THUMB_M4, &["--features", "server"]),
    ("embedded/firmware/common", THUMB_M4, &[]),
    ("embedded/firmware/nucleo-h743zi2", THUMB_M4, &[]),
    ("embedded/firmware/pico2-w5500", THUMB_M33, &[]),
    ("bench/size", THUMB_M4, &["--features", "driver,player"]),
];

/// Formatting and lints of everything that only builds for microcontrollers.
pub(crate) fn lints(shell: &Shell) -> Result<()> {
    let target_dir = shell.path(TARGET_DIR);
    let clippy = |target: &'static str, folder: &str, more: &[&str]| {
        let args = ["clippy", "--release", "--locked", "--target", target].into_iter();
        let args = args.chain(more.iter().copied()).chain(["--", "-D", "warnings"]);
        let command = shell.cmd_for(target, folder, "cargo", args);
        command.with(|command| {
            command.env("CARGO_TARGET_DIR", &target_dir);
        })
    };
    for (folder, target, more) in APART {
        shell.cmd_in(folder, "cargo", ["fmt", "--check"]).run()?;
        clippy(target, folder, more).run()?;
    }
    clippy(THUMB_M4, ".", &["--package", "rakwire-embassy", "--features", "defmt,ipv6"]).run()
}

/// Builds a firmware, and gives back where its binaries are.
pub(crate) fn build(shell: &Shell, folder: &str, target: &'static str, more: &[&str]) -> Result<PathBuf> {
    let target_dir = shell.path(TARGET_DIR);
    let args = ["build", "--release", "--locked", "--target", target].into_iter().chain(more.iter().copied());
    shell
        .cmd_for(target, folder, "cargo", args)
        .with(|command| {
            command.env("CARGO_TARGET_DIR", &target_dir);
        })
        .run()?;
    Ok(target_dir)
}

/// Every scenario; the result in one line of JSON.
fn smoke(host: &Host<'_>, arena: &Arena<'_>) -> Result<String> {
    let clean = host.clean()?;
    if clean.round_trips < 2_000.0 {
        bail!("there were only {} round trips", clean.round_trips);
    }
    let lossy = host.lossy()?;
    let fixed = host.fixed_address()?;
    let mut round_trips = clean.round_trips + lossy.round_trips + fixed.round_trips;
    let mut foreign = Vec::new();
    for peer in FOREIGN {
        let exchange = host.foreign(peer)?;
        round_trips += exchange.round_trips;
        foreign.push(peer.0);
    }
    let stack = clean.stack.max(lossy.stack).max(arena.all()?);
    if stack > MOST_STACK {
        bail!("{stack} bytes of stack were used, more than {MOST_STACK}");
    }
    host.full_pool()?;
    host.restart()?;
    host.link_loss()?;
    host.telemetry()?;
    host.wrong_servers()?;
    let result = json!({
        "ok": true,
        "round_trips": round_trips as u64,
        "rtt_us_median": clean.rtt_us_median as u64,
        "loss_percent": rounded(lossy.loss_percent),
        "stack_bytes": stack as u64,
        "foreign": foreign,
    });
    Ok(result.to_string())
}

fn rounded(number: f64) -> f64 {
    (number * 10.0).round() / 10.0
}
