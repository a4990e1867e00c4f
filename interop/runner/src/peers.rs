//! The peers of the matrix, and their programs.

use crate::cases::Case;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// The exit status of a program that does not support its case.
pub const UNSUPPORTED: i32 = 127;
/// The finding about a program that exits with [`UNSUPPORTED`] in the case `handshake`. Shells use this
/// status if a program is missing.
pub const ALWAYS_SUPPORTED: &str =
    "status 127, although every peer supports the case handshake: a program or its interpreter is missing";
/// The first word of the line that a server prints when it is listening.
const READY: &str = "ready";
/// The time limit for a server to print `ready`.
const READY_TIME: Duration = Duration::from_secs(30);
/// The time limit for a server to exit after its standard input is closed.
const END_TIME: Duration = Duration::from_millis(300);
/// The interval at which a running program is polled.
const POLL: Duration = Duration::from_millis(10);

/// A role of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The peer listens.
    Server,
    /// The peer connects.
    Client,
}

impl Role {
    /// Returns the value of the environment variable `ROLE`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Client => "client",
        }
    }
}

/// A peer of the matrix.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Peer {
    /// Its name.
    pub name: String,
    /// A description of the implementation.
    pub about: String,
    /// The package and its version.
    #[serde(default)]
    pub package: String,
    /// The path of the program, relative to the list of peers.
    #[serde(skip_serializing)]
    pub run: PathBuf,
    /// The roles that it supports.
    pub roles: Vec<Role>,
    /// The protocol versions that it supports.
    pub protocols: Vec<u8>,
    /// The protocol versions of its client, if they differ from those of its server.
    #[serde(default, skip_serializing)]
    pub client_protocols: Option<Vec<u8>>,
}

impl Peer {
    /// Returns true if the peer supports a role.
    #[must_use]
    pub fn plays(&self, role: Role) -> bool {
        self.roles.contains(&role)
    }

    /// Returns the newest protocol version that this client and the server both support.
    #[must_use]
    pub fn protocol_with(&self, server: &Self) -> Option<u8> {
        let own = self.client_protocols.as_ref().unwrap_or(&self.protocols);
        own.iter().copied().filter(|version| server.protocols.contains(version)).max()
    }
}

/// Reads a list of peers.
///
/// # Errors
///
/// Returns an error if the file cannot be read.
pub fn read(list: &Path) -> io::Result<Vec<Peer>> {
    let folder = list.parent().unwrap_or_else(|| Path::new(".")).canonicalize()?;
    let mut peers: Vec<Peer> = serde_json::from_reader(File::open(list)?)?;
    for peer in &mut peers {
        peer.run = folder.join(&peer.run);
    }
    Ok(peers)
}

/// The parameters of a program.
#[derive(Clone, Copy, Debug)]
pub struct Start<'a> {
    /// The case to run.
    pub case: &'a Case,
    /// The protocol version, the value of `PROTOCOL`.
    pub protocol: u8,
    /// The seed of the cell, the value of `SEED`.
    pub seed: u64,
    /// The log file for the program's output.
    pub log: Option<&'a Path>,
}

impl Start<'_> {
    fn command(&self, peer: &Peer, role: Role, address: SocketAddr) -> io::Result<Command> {
        let mut command = Command::new(&peer.run);
        command.envs(self.case.variables()).env("ROLE", role.name());
        command.env("ADDRESS", address.ip().to_string()).env("PORT", address.port().to_string());
        command.env("PROTOCOL", self.protocol.to_string()).env("SEED", self.seed.to_string());
        let [output, errors] = match self.log {
            Some(path) => {
                let file = File::options().create(true).append(true).open(path)?;
                [Stdio::from(file.try_clone()?), Stdio::from(file)]
            }
            None => [Stdio::null(), Stdio::null()],
        };
        command.stdin(Stdio::null()).stdout(output).stderr(errors);
        Ok(command)
    }
}

/// The result of starting a server.
#[derive(Debug)]
pub enum Started {
    /// The server is listening.
    Ready(Server),
    /// The server does not support the case.
    Unsupported,
    /// The server exited, or did not print `ready` in time, as described.
    Failed(String),
}

/// A running server. Dropping it closes the server's standard input, and kills the server if it does not exit
/// within [`END_TIME`].
#[derive(Debug)]
pub struct Server {
    child: Child,
    /// The address at which it listens.
    pub address: SocketAddr,
}

impl Server {
    /// Waits briefly for the server to exit, and returns its exit status.
    fn end(&mut self) -> io::Result<Option<i32>> {
        drop(self.child.stdin.take());
        let began = Instant::now();
        while began.elapsed() < END_TIME {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status.code());
            }
            std::thread::sleep(POLL);
        }
        Ok(None)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if matches!(self.end(), Ok(Some(_))) {
            return;
        }
        // The server may have exited since the check, so an error is not a fault.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts a server on a free port, and waits for its line `ready`.
///
/// # Errors
///
/// Returns an error if no port is free or the program cannot be started.
pub fn serve(peer: &Peer, start: &Start<'_>) -> io::Result<Started> {
    let address = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
    let mut command = start.command(peer, Role::Server, address)?;
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let lines = ready_line(&mut child, start.log)?;
    let mut server = Server { child, address };
    Ok(match lines.recv_timeout(READY_TIME) {
        Ok(()) => {
            wait_for_pong(address)?;
            match server.child.try_wait()? {
                None => Started::Ready(server),
                Some(status) => Started::Failed(format!("the server printed `{READY}` and ended: {status}")),
            }
        }
        Err(RecvTimeoutError::Timeout) => Started::Failed(format!("the server printed no line `{READY}`")),
        Err(RecvTimeoutError::Disconnected) => match server.end()? {
            Some(UNSUPPORTED) if start.case.is_about_the_handshake() => {
                Started::Failed(ALWAYS_SUPPORTED.to_owned())
            }
            Some(UNSUPPORTED) => Started::Unsupported,
            Some(code) => {
                Started::Failed(format!("the server ended with status {code} before it printed `{READY}`"))
            }
            None => Started::Failed(format!("the server closed its output before it printed `{READY}`")),
        },
    })
}

/// Returns a channel that reports the line `ready` of a server. Copies all output of the server to the log,
/// because a full pipe would block it.
fn ready_line(child: &mut Child, log: Option<&Path>) -> io::Result<Receiver<()>> {
    let (ready, lines) = mpsc::channel();
    let output = child.stdout.take();
    let mut log = log.map(|path| File::options().create(true).append(true).open(path)).transpose()?;
    std::thread::spawn(move || {
        for line in output.map(BufReader::new).into_iter().flat_map(BufReader::lines) {
            let Ok(line) = line else { break };
            if line.split_whitespace().next() == Some(READY) {
                // Sending fails after the first line, when the receiver no longer exists.
                let _ = ready.send(());
            }
            if let Some(log) = &mut log {
                // Errors are ignored, because the output must be read even if the disk is full.
                let _ = writeln!(log, "{line}");
            }
        }
    });
    Ok(lines)
}

/// Waits up to a second until a server answers a ping, because some servers print `ready` before they listen.
fn wait_for_pong(server: SocketAddr) -> io::Result<()> {
    rakwire_conformance::start::wait_for_pong(server, Duration::from_secs(1))
}

/// Runs a client until it exits, or kills it after the time limit of its case.
///
/// # Errors
///
/// Returns an error if the program cannot be started.
pub fn dial(peer: &Peer, start: &Start<'_>, address: SocketAddr) -> io::Result<Option<ExitStatus>> {
    let mut child = start.command(peer, Role::Client, address)?.spawn()?;
    let began = Instant::now();
    while began.elapsed() < start.case.time_limit() {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        std::thread::sleep(POLL);
    }
    child.kill()?;
    child.wait()?;
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(protocols: &[u8]) -> Peer {
        Peer {
            name: String::new(),
            about: String::new(),
            package: String::new(),
            run: PathBuf::new(),
            roles: vec![Role::Server],
            protocols: protocols.to_vec(),
            client_protocols: None,
        }
    }

    #[test]
    fn pairs_use_the_newest_common_version() {
        assert_eq!(peer(&[6, 10, 11]).protocol_with(&peer(&[10, 6])), Some(10));
        assert_eq!(peer(&[11]).protocol_with(&peer(&[10, 6])), None);
        let client = Peer { client_protocols: Some(vec![10]), ..peer(&[10, 11]) };
        assert_eq!(client.protocol_with(&peer(&[10, 11])), Some(10));
        assert!(peer(&[]).plays(Role::Server) && !peer(&[]).plays(Role::Client));
    }
}
