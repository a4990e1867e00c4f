//! The other RakNet implementations for the interop tests.

use anyhow::Result;

use super::system::Done;
use crate::shell::Shell;

pub(super) const SCRIPT: &str = "interop/setup.sh";
/// The folder with the programs of the other RakNet implementations.
pub const PROGRAMS: &str = "target/interop/bin";

/// Installs the program that `bench relay` compares with the relay.
pub fn websockify(shell: &Shell) -> Result<()> {
    shell.cmd("bash", [SCRIPT, "websockify"]).run()?;
    shell.set("INTEROP_BIN_DIR", shell.path(PROGRAMS));
    Ok(())
}

/// Builds the named peers, or all of them, with interop/setup.sh, which skips peers that are up to date.
pub(super) fn build(shell: &Shell, peers: &[&str]) -> Result<Done> {
    shell.cmd("bash", [SCRIPT].into_iter().chain(peers.iter().copied())).run()?;
    let programs = shell.path(PROGRAMS);
    shell.set("INTEROP_BIN_DIR", &programs);
    Ok(Done::Installed(format!("in {PROGRAMS}")))
}
