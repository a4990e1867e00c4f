//! Measurements with the program of the crate `rakwire-bench`, built with optimisation.

use anyhow::{Result, bail, ensure};
use clap::Args;

use crate::mcu;
use xtask::artifacts;
use xtask::fields;
use xtask::setup::{self, Need};
use xtask::shell::Shell;
use xtask::targets::WASM;
use xtask::tasks;

/// The measurements that have a page with figures, in the order of `all`. The empty name is that of other RakNets.
const PUBLISHED: [&str; 8] = ["", "fields", "relay", "secure", "transports", "game", "npm", "doors"];

/// The arguments of measurements.
#[derive(Args)]
pub(crate) struct Options {
    /// The measurement and the options of its program. By default, compares rakwire with other RakNet implementations:
    ///
    /// - `all`: all of these except `mcu`, in about an hour; `all --publish` writes all pages with figures
    /// - `mcu`: the firmware in QEMU, instructions and datagrams per second; `--update` rewrites the committed table
    /// - `npm`: the npm package in Chromium, the cost of a message, a busy page with and without a worker, bytes to load
    /// - `relay`: packets per second and core, latency, memory and CPU time of clients, compared with a WebSocket echo
    /// - `secure`: secure connections compared with plain ones over loopback
    /// - `transports`: transports of the npm package with latency and loss; needs root, Linux and /dev/net/tun
    /// - `fields`: quinn, ENet, KCP, renet and GameNetworkingSockets with the same workload
    /// - `doors`: C, C#, Python and Bevy with the same workload as the native client, and Bevy's renet backend
    /// - `game`: the number of players that the server of the snowball fight can serve
    ///
    /// `--quick` measures everything once and small, without meaningful timings; `--runs N`, `--only NAME,…`, `--keep`,
    /// `--resume` and others are those of `cargo run --release -p rakwire-bench -- run --help`. `--publish` writes the
    /// figures into their page, and `--instructions` only counts the instructions of the hot paths for their table.
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "MEASUREMENT",
        verbatim_doc_comment
    )]
    args: Vec<String>,
}

/// `cargo xtask bench`.
pub(crate) fn command(shell: &Shell, options: &Options) -> Result<()> {
    let args: Vec<_> = options.args.iter().map(String::as_str).collect();
    let (part, more) = match args.split_first() {
        Some((first, rest)) if !first.starts_with('-') => (*first, rest),
        _ => ("", &args[..]),
    };
    if part != "all" {
        return measure(shell, part, more);
    }
    ensure!(
        matches!(more, [] | ["--quick"] | ["--publish"]),
        "`bench all` has only the options --quick and --publish, not {more:?}"
    );
    let failure = |part: &&str| Some(format!("bench {part}: {:#}", measure(shell, part, more).err()?));
    let failures: Vec<_> = PUBLISHED.iter().filter_map(failure).collect();
    ensure!(failures.is_empty(), "{} measurements failed:\n{}", failures.len(), failures.join("\n"));
    Ok(())
}

fn measure(shell: &Shell, part: &str, more: &[&str]) -> Result<()> {
    match (part, more) {
        ("mcu", [] | ["--update"]) => return mcu::bench::command(shell, !more.is_empty()),
        ("npm", _) => {
            tasks::set_up(shell, &[Need::NpmPackage, Need::Chromium])?;
            drop(artifacts::fast_programs(shell)?);
        }
        ("", ["--instructions"]) => {
            tasks::set_up(shell, &[Need::Valgrind])?;
            return run(shell, &["instructions", "--write"]);
        }
        ("", _) => tasks::set_up(shell, &[Need::Peers])?,
        ("relay", _) => {
            artifacts::fast_relay(shell)?;
            setup::websockify(shell)?;
        }
        ("transports", _) => {
            tasks::set_up(shell, &[Need::NpmPackage, Need::Chromium, Need::IpRoute])?;
            artifacts::fast_relay(shell).map(drop)?;
        }
        ("fields", _) => drop(fields::build(shell)?),
        ("game", _) => drop(artifacts::fast_programs(shell)?),
        ("secure" | "doors", _) => {}
        _ => bail!("`bench` has no measurement {part:?} with {more:?}; see `cargo xtask bench --help`"),
    }
    run(shell, &[&[if part.is_empty() { "run" } else { part }], more].concat())
}

/// Checks that the commands work.
pub(crate) fn smoke(shell: &Shell) -> Result<()> {
    ["", "secure", "fields", "relay"].iter().try_for_each(|part| measure(shell, part, &["--quick"]))
}

/// Runs a command of the program of the crate.
pub(crate) fn run(shell: &Shell, args: &[&str]) -> Result<()> {
    let program = ["run", "--quiet", "--release", "--package", "rakwire-bench", "--"];
    // The measurement of the npm package also builds for browsers.
    shell.cmd_for(WASM, "", "cargo", program.into_iter().chain(args.iter().copied())).run()
}
