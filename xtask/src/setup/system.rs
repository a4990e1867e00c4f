//! Installs packages with the system's package manager.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Result, bail};
use nix::unistd::Uid;

use super::done::Done;
use crate::process::Cmd;
use crate::shell::Shell;

/// True once this run has updated the package lists.
static UPDATED: AtomicBool = AtomicBool::new(false);

/// Finds a program, or installs it with the system's package manager.
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

/// Finds a program with a service of that name in its package, or installs it without leaving the service running.
pub(super) fn daemon(shell: &Shell, name: &str, package: &str) -> Result<Done> {
    let find = || shell.find_program(name).or_else(|| in_sbin(name));
    if let Some(found) = find() {
        return Ok(Done::Present(format!("{} is there", found.display())));
    }
    install(shell, package)?;
    if Path::new("/run/systemd/system").is_dir() {
        as_root(shell, "systemctl", ["disable", "--now", name]).run()?;
    }
    match find() {
        Some(found) => Ok(Done::Installed(found.display().to_string())),
        None => bail!("the package is installed, but there is no `{name}`"),
    }
}

/// Finds programs and libraries by one file each, or installs their packages.
pub(super) fn files(shell: &Shell, wanted: &[(&str, &str)]) -> Result<Done> {
    let missing = wanted.iter().filter(|(file, _)| !Path::new(file).exists());
    let missing: Vec<&str> = missing.map(|(_, package)| *package).collect();
    for package in &missing {
        install(shell, package)?;
    }
    match wanted.iter().find(|(file, _)| !Path::new(file).exists()) {
        Some((file, package)) => bail!("{package} is installed, but there is no {file}"),
        None if missing.is_empty() => Ok(Done::Present("all are installed".to_owned())),
        None => Ok(Done::Installed(missing.join(" "))),
    }
}

/// Returns instructions to install what [`files`] searches for.
pub(super) fn by_hand(wanted: &[(&str, &str)]) -> String {
    let packages: Vec<&str> = wanted.iter().map(|(_, package)| *package).collect();
    format!("`apt-get install {}`", packages.join(" "))
}

/// Finds a daemon in the sbin folders, which are not on every user's path.
fn in_sbin(name: &str) -> Option<PathBuf> {
    Some(Path::new("/usr/sbin").join(name)).filter(|path| path.is_file())
}

/// Installs a package of the distribution.
pub(super) fn install(shell: &Shell, package: &str) -> Result<()> {
    if !Path::new("/usr/bin/apt-get").is_file() {
        bail!("{package} is missing, and there is no apt-get to install it");
    }
    // Wait for other runs of the package manager.
    let wait = ["-o", "DPkg::Lock::Timeout=600"];
    if !UPDATED.load(Ordering::SeqCst) {
        // An interrupted run leaves packages that block apt-get. If this fails, apt-get reports the reason.
        let _ = as_root(shell, "dpkg", ["--configure", "-a"]).run();
        apt_get(shell, wait.into_iter().chain(["update"]))?;
        UPDATED.store(true, Ordering::SeqCst);
    }
    apt_get(shell, wait.into_iter().chain(["install", "-y", "--no-install-recommends", package]))
}

fn apt_get<'a>(shell: &Shell, args: impl IntoIterator<Item = &'a str>) -> Result<()> {
    as_root(shell, "apt-get", args)
        .with(|command| {
            command.env("DEBIAN_FRONTEND", "noninteractive");
        })
        .run()
}

fn as_root<'a>(shell: &Shell, program: &'a str, args: impl IntoIterator<Item = &'a str>) -> Cmd {
    if Uid::effective().is_root() {
        shell.cmd(program, args)
    } else {
        shell.cmd("sudo", ["-n", program].into_iter().chain(args))
    }
}
