//! What the system's package manager installs.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Result, bail};
use nix::unistd::Uid;

use super::done::Done;
use crate::shell::Shell;

/// Whether this run has fetched the lists of packages.
static UPDATED: AtomicBool = AtomicBool::new(false);

/// Finds a program, or has the system's package manager install it.
pub(super) fn program(shell: &Shell, name: &str, package: &str) -> Result<Done> {
    if let Some(found) = shell.find_program(name) {
        return Ok(Done::Present(format!("{} is there", found.display())));
    }
    install(shell, package)?;
    match shell.find_program(name) {
        Some(found) => Ok(Done::Installed(found.display().to_string())),
        None => bail!("the package is installed, but there is no `{name}`"),
    }
}

/// Installs a package of the distribution.
pub(super) fn install(shell: &Shell, package: &str) -> Result<()> {
    if !Path::new("/usr/bin/apt-get").is_file() {
        bail!("there is no {package}, and no apt-get to install it with");
    }
    // Another run of the package manager may be under way: wait for it.
    let wait = ["-o", "DPkg::Lock::Timeout=600"];
    if !UPDATED.load(Ordering::SeqCst) {
        apt_get(shell, wait.into_iter().chain(["update"]))?;
        UPDATED.store(true, Ordering::SeqCst);
    }
    apt_get(shell, wait.into_iter().chain(["install", "-y", "--no-install-recommends", package]))
}

fn apt_get<'a>(shell: &Shell, args: impl IntoIterator<Item = &'a str>) -> Result<()> {
    let command = if Uid::effective().is_root() {
        shell.cmd("apt-get", args)
    } else {
        shell.cmd("sudo", ["-n", "apt-get"].into_iter().chain(args))
    };
    command
        .with(|command| {
            command.env("DEBIAN_FRONTEND", "noninteractive");
        })
        .run()
}
