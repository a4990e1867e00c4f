//! Chromium, for the tests that run in a browser.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use nix::unistd::Uid;

use super::Done;
use crate::shell::Shell;

const NAMES: [&str; 4] = ["chromium", "google-chrome", "google-chrome-stable", "chromium-browser"];

/// Finds Chromium, or has the system's package manager install it, and names it to all children as `CHROMIUM`.
pub(super) fn chromium(shell: &mut Shell) -> Result<Done> {
    if let Some(named) = shell.variable("CHROMIUM") {
        let named = PathBuf::from(named);
        if !named.is_file() {
            bail!("CHROMIUM names {}, which is not there", named.display());
        }
        return Ok(Done::Present(format!("CHROMIUM names {}", named.display())));
    }
    if let Some(found) = find(shell) {
        shell.set("CHROMIUM", &found);
        return Ok(Done::Present(format!("{} is there", found.display())));
    }
    apt_install(shell, "chromium")?;
    let found = find(shell).context("the package is installed, but there is no `chromium`")?;
    shell.set("CHROMIUM", &found);
    Ok(Done::Installed(found.display().to_string()))
}

fn find(shell: &Shell) -> Option<PathBuf> {
    NAMES.iter().find_map(|name| shell.find_program(name))
}

/// Has the system's package manager install a package.
pub(super) fn apt_install(shell: &Shell, package: &str) -> Result<()> {
    if !Path::new("/usr/bin/apt-get").is_file() {
        bail!("{package} is missing, and there is no apt-get to install it with");
    }
    // Another run of the package manager may be under way: wait for it.
    let wait = ["-o", "DPkg::Lock::Timeout=600"];
    apt_get(shell, wait.into_iter().chain(["update"]))?;
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
