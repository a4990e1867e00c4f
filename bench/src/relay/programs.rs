//! The programs under measurement: the relay and the WebSocket echo.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::pairing::itself;
use crate::process::Program;

/// The time limit of a measurement.
pub(super) const LONGEST: Duration = Duration::from_secs(120);

/// A program, and the address that clients connect to.
#[derive(Debug)]
pub(super) struct Listening {
    pub(super) program: Program,
    pub(super) address: SocketAddr,
}

/// Starts a relay in front of `target`, for up to `clients` clients that may be silent for long.
pub(super) fn relay(core: usize, target: SocketAddr, clients: usize) -> Result<Listening> {
    let mut command = relay_command();
    command.args(["--target", &format!("game={target}"), "--max-clients", &(clients + 1).to_string()]);
    command.args(["--idle-timeout", "1h", "--ping-interval", "1h"]);
    let program = Program::start(command, core, LONGEST)?;
    let address = announced(&program.line()?, "listening on http://")?;
    Ok(Listening { program, address })
}

/// Starts a relay with a front for native UDP clients before `target`.
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
    address.with_context(|| format!("{line:?} announces no address"))
}
