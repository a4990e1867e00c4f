//! Peers that the suite starts itself, a fresh one for each case, and the address for clients.

use crate::model::{Fault, Model};
use crate::wire::{self, id};
use std::io::{self, BufRead as _, BufReader};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// The client that connects.
#[derive(Clone, Debug)]
pub enum Dialler {
    /// One that is started elsewhere, again and again.
    Other,
    /// A command line of a shell; `{}` stands for the address, `{port}` for its port.
    Command(String),
    /// The built-in model, with a fault.
    Model(Fault),
}

/// The address at which the suite waits for a client.
#[derive(Clone, Debug)]
pub struct Listening {
    /// The address; with port 0 each case uses a different port.
    pub address: SocketAddr,
    /// The client.
    pub dialler: Dialler,
    /// The time that the suite waits for it.
    pub patience: Duration,
}

impl Listening {
    /// Returns whether the suite starts a client for each case.
    #[must_use]
    pub fn starts_clients(&self) -> bool {
        !matches!(self.dialler, Dialler::Other)
    }

    /// Starts the client, if the suite does so.
    ///
    /// # Errors
    ///
    /// When the program or the model cannot be started.
    pub fn start(&self, address: SocketAddr) -> io::Result<Option<Started>> {
        match &self.dialler {
            Dialler::Other => Ok(None),
            Dialler::Model(fault) => Ok(Some(Started::Model(Model::dial(address, *fault)?))),
            Dialler::Command(line) => {
                let program = Program(command(line, address).stdout(Stdio::null()).spawn()?);
                Ok(Some(Started::Program(program)))
            }
        }
    }
}

/// A peer that was started for a case; it ends when this is dropped.
#[derive(Debug)]
pub enum Started {
    /// A program.
    Program(Program),
    /// The built-in model.
    Model(Model),
}

/// A running program; it ends when this is dropped.
#[derive(Debug)]
pub struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        // It may have exited.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A command line of a shell with the address inserted. Its standard input stays open for as long as it runs.
fn command(line: &str, address: SocketAddr) -> Command {
    let line = line.replace("{}", &address.to_string()).replace("{port}", &address.port().to_string());
    let mut command = Command::new("sh");
    command.args(["-c", &format!("exec {line}")]).stdin(Stdio::piped()).stderr(Stdio::null());
    command
}

/// Starts a server on a free port of this machine and waits for the first line that it prints.
///
/// # Errors
///
/// When the program cannot be started, or prints nothing within `patience`.
pub fn server(line: &str, patience: Duration) -> io::Result<(Started, SocketAddr)> {
    let free = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = free.local_addr()?;
    drop(free);
    let mut child = command(line, address).stdout(Stdio::piped()).spawn()?;
    let output = child.stdout.take();
    let program = Started::Program(Program(child));
    let (ready, first) = mpsc::channel();
    std::thread::spawn(move || {
        // Unread lines would block the server.
        for line in output.map(BufReader::new).into_iter().flat_map(BufReader::lines) {
            if line.is_err() {
                break;
            }
            // After the first line nothing waits any more.
            let _ = ready.send(());
        }
    });
    match first.recv_timeout(patience) {
        Ok(()) => Ok((program, address)),
        Err(_) => Err(io::Error::other(format!("a server that was started by `{line}` printed no line"))),
    }
}

/// Waits until a server answers a ping, since some print their line before they listen.
///
/// A server that answers none is tested nevertheless.
///
/// # Errors
///
/// When no socket can be opened.
pub fn wait_for_pong(server: SocketAddr, patience: Duration) -> io::Result<()> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    socket.set_read_timeout(Some(Duration::from_millis(50)))?;
    let began = Instant::now();
    while began.elapsed() < patience {
        // Nothing may listen yet, which the socket reports.
        let _ = socket.send_to(&wire::ping(id::PING, 1, 1), server);
        if socket.recv_from(&mut [0; 2048]).is_ok() {
            break;
        }
    }
    Ok(())
}
