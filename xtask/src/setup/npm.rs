//! Checks Node, and installs the npm packages of folders.

use std::fs;

use anyhow::{Context, Result, bail};

use super::system::Done;
use crate::files;
use crate::shell::Shell;

const OLDEST_NODE: u32 = 20;

pub(super) fn node(shell: &Shell) -> Result<Done> {
    let printed = shell
        .cmd("node", ["--version"])
        .probe()?
        .context("`node` is not installed: install Node 20 or newer with npm")?;
    let version = printed.trim();
    let major = version.trim_start_matches('v').split('.').next().and_then(|major| major.parse().ok());
    let major: u32 = major.with_context(|| format!("`node --version` printed {version:?}"))?;
    if major < OLDEST_NODE {
        bail!("Node {version} is too old: {OLDEST_NODE} or newer is needed");
    }
    let npm =
        shell.cmd("npm", ["--version"]).probe()?.context("`npm` is not installed: it comes with Node")?;
    Ok(Done::Present(format!("node {version} and npm {} are installed", npm.trim())))
}

/// Installs the packages of each folder if its lock file has changed since the last time.
pub(super) fn packages(shell: &Shell, folders: &[&str]) -> Result<Done> {
    let mut installed = Vec::new();
    for folder in folders {
        if install(shell, folder)? {
            installed.push(*folder);
        }
    }
    if installed.is_empty() {
        return Ok(Done::Present("installed as in the lock files".to_owned()));
    }
    Ok(Done::Installed(format!("in {}", installed.join(" and "))))
}

fn install(shell: &Shell, folder: &str) -> Result<bool> {
    let lock = shell.read(&format!("{folder}/package-lock.json"))?;
    // A copy of the lock file. It is written last, so it exists only if the installation was completed.
    let stamp = shell.path(folder).join("node_modules/.rakwire-lock");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == lock) {
        return Ok(false);
    }
    shell.cmd_in(folder, "npm", ["ci", "--no-audit", "--no-fund"]).run()?;
    files::write(&stamp, lock)?;
    Ok(true)
}
