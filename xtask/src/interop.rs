//! The tests with other RakNet implementations, their runner, and the pages of the results.

use std::env;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::artifacts::target_dir;
use crate::files;
use crate::process::Cmd;
use crate::shell::Shell;
use crate::workspaces;

const PAGE: &str = "docs/interop.md";
const MATRIX_PAGE: &str = "docs/interop-matrix.md";
/// The page that the runner writes.
const FOUND_MATRIX: &str = "target/interop-matrix.md";
const RUNNER: &str = "interop/runner";
/// The environment variable that makes a stage rewrite its page instead of comparing it.
const UPDATE: &str = "UPDATE_INTEROP";

/// The stage of `cargo xtask ci`.
pub fn stage(shell: &Shell) -> Result<()> {
    let found = target_dir(shell)?.join("tmp/interop.md");
    // Remove the results of an earlier run.
    files::remove_file(&found)?;
    // Runs the tests within the whole workspace, so that cargo rebuilds nothing with fewer features.
    shell.cmd("cargo", ["test", "--workspace", "--test", "interop"]).run()?;
    publish(shell, PAGE, &found)
}

/// The stage of `cargo xtask nightly` for the runner.
pub fn matrix(shell: &Shell) -> Result<()> {
    workspaces::check(shell, RUNNER)?;
    let found = shell.path(FOUND_MATRIX);
    files::remove_file(&found)?;
    build_peer(shell)?;
    pairs(shell, &["--page", files::text(&found)?])?.run()?;
    publish(shell, MATRIX_PAGE, &found)
}

/// Builds the rakwire peer with the features of the whole workspace, so that cargo uses what it has built.
pub fn build_peer(shell: &Shell) -> Result<()> {
    shell.cmd("cargo", ["build", "--workspace", "--bin", "rakwire-peer"]).run()
}

/// Creates a command that runs the interop runner with these arguments.
pub fn pairs(shell: &Shell, arguments: &[&str]) -> Result<Cmd> {
    let program = target_dir(shell)?.join("debug/rakwire-peer");
    let run = ["run", "--quiet", "--locked", "--manifest-path", "interop/runner/Cargo.toml", "--"];
    let command = shell.cmd("cargo", run.into_iter().chain(arguments.iter().copied()));
    let target = shell.path(&workspaces::target_dir(RUNNER));
    Ok(command.env("CARGO_TARGET_DIR", target).env("RAKWIRE_PEER", program))
}

/// Compares a page with the results, or rewrites it.
fn publish(shell: &Shell, page: &str, found: &Path) -> Result<()> {
    if !found.is_file() {
        bail!("{} was not written", found.display());
    }
    if env::var_os(UPDATE).is_some() {
        return files::copy(found, &shell.path(page));
    }
    let args = ["--unified", "--label=committed", "--label=found", page, files::text(found)?];
    shell.cmd("diff", args).run().with_context(|| format!("set {UPDATE}=1 to rewrite {page}"))?;
    shell.print(format_args!("{page} matches the results"));
    Ok(())
}

/// Runs the tests with the Python wheel, the only foreign peer that needs no build.
pub fn smoke(shell: &Shell) -> Result<()> {
    let args = ["test", "--workspace", "--test", "interop", "--", "python", "--skip", "cpp"];
    shell.cmd("cargo", args).run()
}
