//! The package `xtask-tools`: stages and commands that are slow to compile, in a separate program.

use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::artifacts::target_dir;
use crate::files;
use crate::process::Cmd;
use crate::shell::Shell;

const PACKAGE: &str = "xtask-tools";
/// The command of `xtask-tools` that runs a stage.
pub const STAGE: &str = "stage";

/// Builds `xtask-tools` and returns the path of the program.
pub fn build(shell: &Shell) -> Result<String> {
    shell.cmd("cargo", ["build", "--quiet", "--package", PACKAGE]).run()?;
    Ok(program(shell)?.display().to_string())
}

/// Runs a stage in `xtask-tools`, which must be built.
pub fn stage(shell: &Shell, name: &str) -> Result<()> {
    cmd(shell, &[STAGE, name])?.run()
}

/// Forwards a command to `xtask-tools`, which must be built and reports failures itself. Returns true on success.
pub fn forward(shell: &Shell, args: &[&str]) -> Result<bool> {
    Ok(cmd(shell, args)?.spawn()?.wait(None)?.success())
}

fn cmd(shell: &Shell, args: &[&str]) -> Result<Cmd> {
    let program = program(shell)?;
    Ok(shell.cmd_of_xtask(files::text(&program)?, args.iter().copied()))
}

fn program(shell: &Shell) -> Result<PathBuf> {
    let program = target_dir(shell)?.join("debug").join(PACKAGE);
    if program.is_file() { Ok(program) } else { bail!("the build did not produce {}", program.display()) }
}
