//! Starts the measured programs: the relay and the echo servers that it is compared with.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::pairing::itself;
use crate::process::Program;

/// The time limit of a program in one measurement.
pub(super) const LONGEST: Duration = Duration::from_secs(120);

/// A running program and the address on which it listens.
#[derive(Debug)]
pub(super) struct Listening {
    pub(super) program: Program,
    pub(super) address: SocketAddr,
}

/// Starts a relay in front of `target` for up to `clients` clients, which may be silent for an hour.
pub(super) fn relay(core: usize, target: SocketAddr, clients: usize) -> Result<Listening> {
    let mut command = relay_command();
    command.args(["--target", &format!("game={target}"), "--max-clients", &(clients + 1).to_string()]);
    command.args(["--idle-timeout", "1h", "--ping-interval", "1h"]);
    let program = Program::start(command, core, LONGEST)?;
    let address = announced(&program.line()?, "listening on http://")?;
    Ok(Listening { program, address })
}

/// Starts a relay with a UDP front for native clients. `target` is a server of the Game Protocol.
pub(super) fn front(core: usize, target: SocketAddr) -> Result<Listening> {
    let mut command = relay_command();
    command.args(["--target", &format!("game={target},kind=game-protocol"), "--udp-listen", "127.0.0.1:0"]);
    let program = Program::start(command, core, LONGEST)?;
    program.line()?;
    let address = announced(&program.line()?, "listening on udp://")?;
    Ok(Listening { program, address })
}

pub(super) fn websocket_echo(core: usize) -> Result<Listening> {
    echo(core, &["websocket-echo"])
}

pub(super) fn udp_echo(core: usize) -> Result<Listening> {
    echo(core, &["udp", "echo"])
}

fn echo(core: usize, role: &[&str]) -> Result<Listening> {
    let mut command = itself()?;
    command.args(role);
    let program = Program::start(command, core, LONGEST)?;
    let address = (Ipv4Addr::LOCALHOST, program.port()?).into();
    Ok(Listening { program, address })
}

fn relay_command() -> Command {
    let path = std::env::var_os("RAKWIRE_RELAY_BIN").unwrap_or_else(|| "target/release/rakwire-relay".into());
    let mut command = Command::new(path);
    command.env_remove("RUST_LOG").args(["--listen", "127.0.0.1:0", "--log-level", "error"]);
    command
}

fn announced(line: &str, prefix: &str) -> Result<SocketAddr> {
    let address = line.strip_prefix(prefix).and_then(|address| address.trim().parse().ok());
    address.with_context(|| format!("expected the line \"{prefix}ADDRESS\", but the relay printed {line:?}"))
}
