//! QEMU for Arm boards, for the firmware's tests.

use anyhow::{Context, Result};

use super::done::Done;
use super::system;
use crate::shell::Shell;

pub(crate) const QEMU: &str = "qemu-system-arm";

/// Finds QEMU, or has the system's package manager install it.
pub(super) fn qemu(shell: &Shell) -> Result<Done> {
    if let Some(found) = shell.find_program(QEMU) {
        return Ok(Done::Present(format!("{} is there", found.display())));
    }
    system::install(shell, QEMU)?;
    let found = shell.find_program(QEMU).context("the package is installed, but there is no such program")?;
    Ok(Done::Installed(found.display().to_string()))
}
