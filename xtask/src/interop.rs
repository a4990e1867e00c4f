//! The tests with other RakNet implementations, their runner, and the pages of the results.

use std::env;

use anyhow::{Context, Result};

use crate::artifacts::target_dir;
use crate::files;
use crate::process::Cmd;
use crate::shell::Shell;
use crate::workspaces;

const PAGE: &str = "docs/interop.md";
const MATRIX_PAGE: &str = "docs/interop-matrix.md";
/// The page as the runner writes it.
const FOUND_MATRIX: &str = "target/interop-matrix.md";
const RUNNER: &str = "interop/runner";
/// Rewrites the page instead of comparing it.
const UPDATE: &str = "UPDATE_INTEROP";

/// The stage of `cargo xtask ci`.
pub fn stage(shell: &Shell) -> Result<()> {
    let path = target_dir(shell)?.join("tmp/interop.md");
    // Remove the results of an earlier run.
    files::remove_file(&path)?;
    // Test within the whole workspace, so that nothing is rebuilt with fewer features.
    shell.cmd("cargo", ["test", "--workspace", "--test", "interop"]).run()?;
    if env::var_os(UPDATE).is_some() {
        return files::copy(&path, &shell.path(PAGE));
    }
    let args = ["--unified", "--label=committed", "--label=found", PAGE, files::text(&path)?];
    shell.cmd("diff", args).run().with_context(|| format!("set {UPDATE}=1 to rewrite {PAGE}"))?;
    shell.print(format_args!("{PAGE} matches the results"));
    Ok(())
}

/// Runs the tests with the one other RakNet that needs no further software.
pub fn smoke(shell: &Shell) -> Result<()> {
    let args = ["test", "--workspace", "--test", "interop", "--", "python", "--skip", "cpp"];
    shell.cmd("cargo", args).run()
}
