//! The foreign RakNet peers that the interop tests talk to.

use anyhow::Result;

use super::done::Done;
use crate::shell::Shell;

pub(super) const SCRIPT: &str = "interop/setup.sh";
/// Where their programs lie.
pub(crate) const PROGRAMS: &str = "target/interop/bin";

/// What `bench relay` measures beside the relay.
pub(crate) fn websockify(shell: &Shell) -> Result<()> {
    shell.cmd("bash", [SCRIPT, "websockify"]).run()?;
    shell.set("INTEROP_BIN_DIR", shell.path(PROGRAMS));
    Ok(())
}

/// The script itself looks at what is there and builds the rest.
pub(super) fn build(shell: &Shell) -> Result<Done> {
    shell.cmd("bash", [SCRIPT]).run()?;
    let programs = shell.path(PROGRAMS);
    shell.set("INTEROP_BIN_DIR", &programs);
    Ok(Done::Installed(format!("in {PROGRAMS}")))
}
