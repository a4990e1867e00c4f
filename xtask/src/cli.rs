//! The commands and their options.

use clap::{Args, Parser, Subcommand};

use crate::{bench, demo, fuzz, mcu, mutants, relay_package, release, size};

/// The commands of this repository.
#[derive(Parser)]
#[command(bin_name = "cargo xtask")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Install everything that the other commands need.
    Setup,
    /// Build the npm package: wasm/pkg and wasm/dist.
    Wasm,
    /// Build the page: web/dist.
    Web,
    /// Run a game server, the relay and the page until Ctrl-C.
    Demo(demo::Options),
    /// Run the firmware of microcontrollers in QEMU.
    Mcu(mcu::Options),
    /// Measure how much memory everything takes, and compare with the committed tables.
    Size(size::Options),
    /// Run every test of every part.
    Test(Selection),
    /// Look for faults of the core with generated input.
    Fuzz(fuzz::FuzzOptions),
    /// Run the core over bad networks, thousands of times.
    Soak(fuzz::SoakOptions),
    /// Put faults into a copy of the core, one at a time: the tests must find each of them.
    Mutants(mutants::Options),
    /// Measure speed beside other RakNets and beside the bare socket.
    Bench(bench::Options),
    /// Build the Debian package of the relay, in target/relay-package.
    PackageRelay(relay_package::Options),
    /// Check and pack a release, and print the commands that upload it.
    Release(release::Options),
    /// What a change must pass: formatting, lints, docs, dependency policy and every test.
    Ci(Selection),
}

/// Which stages to run.
#[derive(Args)]
pub(crate) struct Selection {
    /// Run this stage only, with the set-up that it needs.
    #[arg(long, value_name = "NAME")]
    pub(crate) only: Option<String>,
    /// List the stages and run none.
    #[arg(long, conflicts_with = "only")]
    pub(crate) list: bool,
}
