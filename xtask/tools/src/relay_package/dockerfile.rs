//! The Dockerfile: linted and built if the tools are installed.

use anyhow::{Result, bail};

use xtask::shell::Shell;

const DOCKERFILE: &str = "relay/packaging/Dockerfile";
const IMAGE: &str = "rakwire-relay-check";

/// Lints the Dockerfile with hadolint, and builds it with docker or podman. A machine may have none of them.
pub(super) fn check(shell: &Shell) -> Result<()> {
    if shell.find_program("hadolint").is_some() {
        shell.cmd("hadolint", [DOCKERFILE]).run()?;
    }
    let works = |builder: &&str| {
        shell.find_program(builder).is_some()
            && shell.cmd(builder, ["info"]).probe().is_ok_and(|said| said.is_some())
    };
    let Some(builder) = ["docker", "podman"].into_iter().find(works) else {
        shell.print(format_args!("{DOCKERFILE} is not built: neither docker nor podman works here"));
        return Ok(());
    };
    shell.cmd(builder, ["build", "--file", DOCKERFILE, "--tag", IMAGE, "."]).run()?;
    let said = shell.cmd(builder, ["run", "--rm", "--read-only", IMAGE, "--version"]).probe()?;
    if !said.as_deref().is_some_and(|said| said.starts_with("rakwire-relay ")) {
        bail!("the image prints {said:?} for --version");
    }
    shell.cmd(builder, ["rmi", IMAGE]).run()
}
