//! The foreign RakNet peers that the interop tests talk to.

use anyhow::Result;

use super::done::Done;
use crate::shell::Shell;

pub(super) const SCRIPT: &str = "interop/setup.sh";
/// Where their programs lie.
pub const PROGRAMS: &str = "target/interop/bin";

/// What `bench relay` measures beside the relay.
pub fn websockify(shell: &Shell) -> Result<()> {
    shell.cmd("bash", [SCRIPT, "websockify"]).run()?;
    shell.set("INTEROP_BIN_DIR", shell.path(PROGRAMS));
    Ok(())
}

/// Has the script build the peers of these names, or all of them; it looks itself at what is there.
pub(super) fn build(shell: &Shell, peers: &[&str]) -> Result<Done> {
    shell.cmd("bash", [SCRIPT].into_iter().chain(peers.iter().copied())).run()?;
    let programs = shell.path(PROGRAMS);
    shell.set("INTEROP_BIN_DIR", &programs);
    Ok(Done::Installed(format!("in {PROGRAMS}")))
}
