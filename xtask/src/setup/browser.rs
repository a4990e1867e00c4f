//! Chromium, for the tests that run in a browser.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use super::done::Done;
use super::system;
use crate::shell::Shell;

const NAMES: [&str; 4] = ["chromium", "google-chrome", "google-chrome-stable", "chromium-browser"];

/// Finds Chromium, or has the system's package manager install it, and names it to all children as `CHROMIUM`.
pub(super) fn chromium(shell: &Shell) -> Result<Done> {
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
    system::install(shell, "chromium")?;
    let found = find(shell).context("the package is installed, but there is no `chromium`")?;
    shell.set("CHROMIUM", &found);
    Ok(Done::Installed(found.display().to_string()))
}

fn find(shell: &Shell) -> Option<PathBuf> {
    NAMES.iter().find_map(|name| shell.find_program(name))
}
