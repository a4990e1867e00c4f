//! Builds the Debian package of the relay, and tests it in its own root.

mod contents;
mod debian;
mod dockerfile;
mod guide;
mod installed;

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;

use self::contents::FOLDER;
use xtask::artifacts;
use xtask::setup::Need;
use xtask::shell::Shell;
use xtask::tasks;

/// Options of `cargo xtask package-relay`.
#[derive(Args)]
pub(crate) struct Options {
    /// Install the package into its own root, start and drain the relay, and remove the package
    #[arg(long)]
    test: bool,
    /// Follow docs/relay.md on a bare Debian with systemd, created by debootstrap and booted by systemd-nspawn. Needs
    /// root
    #[arg(long)]
    debian: bool,
}

/// Builds the relay with optimisation, and its package.
pub(crate) fn command(shell: &Shell, options: &Options) -> Result<()> {
    if options.debian {
        tasks::set_up(shell, &[Need::BareDebian])?;
    }
    let programs = artifacts::fast_programs(shell)?;
    let package = build(shell, FOLDER, &programs.relay)?;
    if options.test {
        installed::check(shell, &package)?;
    }
    if options.debian {
        debian::check(shell, &package)?;
    }
    Ok(())
}

/// The stage of `cargo xtask nightly`. The packaged programs need no optimisation.
pub(crate) fn stage(shell: &Shell) -> Result<()> {
    dockerfile::check(shell)?;
    let programs = artifacts::built_programs(shell)?;
    let package = build(shell, FOLDER, &programs.relay)?;
    installed::check(shell, &package)
}

/// Packs a built relay in a folder of the repository, and returns the path of the package.
pub(crate) fn build(shell: &Shell, folder: &str, relay: &Path) -> Result<PathBuf> {
    let package = contents::build(shell, folder, relay)?;
    let size = std::fs::metadata(&package)?.len();
    shell.print(format_args!("{}: {size} bytes", package.display()));
    Ok(package)
}
