//! Workspaces next to the main one, each with its own lock file and target folder.

use anyhow::Result;

use crate::process::Cmd;
use crate::shell::Shell;

/// Checks the formatting and the lints of a workspace, and runs its tests.
pub fn check(shell: &Shell, folder: &str) -> Result<()> {
    lints(shell, folder, &["--all-targets"])?;
    cargo(shell, folder, &["test", "--locked"]).run()
}

/// Checks the formatting of a workspace, and the lints of the code that these options of cargo select.
pub fn lints(shell: &Shell, folder: &str, selection: &[&str]) -> Result<()> {
    cargo(shell, folder, &["fmt", "--check"]).run()?;
    cargo(shell, folder, &[&["clippy", "--locked"], selection, &["--", "-D", "warnings"]].concat()).run()
}

/// Creates a cargo command in the folder of a workspace.
pub fn cargo(shell: &Shell, folder: &str, args: &[&str]) -> Cmd {
    let target_dir = shell.path(&target_dir(folder));
    shell.cmd_in(folder, "cargo", args.iter().copied()).env("CARGO_TARGET_DIR", target_dir)
}

/// Returns the target folder of a workspace.
pub fn target_dir(folder: &str) -> String {
    format!("target/{}", folder.rsplit('/').next().unwrap_or(folder))
}
