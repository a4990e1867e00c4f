//! Mutation testing: faults are inserted into a copy of the core and of the relay. The models and simulated worlds must
//! find each fault of the list, unless the list excludes it with a reason. Without a fault they must find nothing.
//!
//! All mutants of `fuzz/mutants.toml` are compiled into one program, and an environment variable selects the active
//! one. This takes minutes less than cargo-mutants, which builds each mutant. Other builds contain no mutants.

mod copy;
mod models;
mod worlds;

use anyhow::{Context, Result};
use clap::Args;
use xtask::files;
use xtask::setup::Need;
use xtask::shell::Shell;
use xtask::tasks;

/// The output folder of cargo-mutants.
const REPORT: &str = "target/mutants/all";

/// The selection of mutants.
#[derive(Args)]
pub(crate) struct Options {
    /// Try only the mutants of the list with this text in their names.
    #[arg(long, value_name = "NAME", conflicts_with = "all")]
    only: Option<String>,
    /// Print the number of simulated worlds that find each mutant; try at most this many.
    #[arg(long, value_name = "N", conflicts_with = "all")]
    worlds: Option<u64>,
    /// Let cargo-mutants change every function of the protocols and run all tests of the core: minutes to hours per
    /// file, days in total.
    #[arg(long)]
    all: bool,
    /// The part of all mutants to try, from 0/N to N-1/N.
    #[arg(long, value_name = "K/N", requires = "all")]
    shard: Option<String>,
    /// Try only the mutants in matching files.
    #[arg(long, value_name = "GLOB", requires = "all")]
    file: Option<String>,
}

/// `cargo xtask mutants`.
pub(crate) fn command(shell: &Shell, options: &Options) -> Result<()> {
    let only = options.only.as_deref().unwrap_or_default();
    match options.worlds {
        Some(worlds) => worlds::command(shell, worlds, only),
        None if options.all => cargo_mutants(shell, options),
        None => models::run(shell, only),
    }
}

/// The stage of `cargo xtask nightly`.
pub(crate) fn stage(shell: &Shell) -> Result<()> {
    models::run(shell, "")?;
    worlds::check(shell)
}

/// Runs cargo-mutants, which reads `.cargo/mutants.toml`, over its own copy.
fn cargo_mutants(shell: &Shell, options: &Options) -> Result<()> {
    tasks::set_up(shell, &[Need::CargoMutants])?;
    let report = shell.path(REPORT);
    let mut args = vec!["mutants", "--package", "rakwire", "--jobs", "1", "--output", files::text(&report)?];
    for (option, value) in [("--shard", &options.shard), ("--file", &options.file)] {
        args.extend(value.iter().flat_map(|value| [option, value.as_str()]));
    }
    let ran = shell.cmd("cargo", args).run();
    ran.with_context(|| format!("the survivors are listed in {REPORT}/mutants.out/missed.txt"))
}
