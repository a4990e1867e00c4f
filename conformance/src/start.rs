//! Starts peers for cases, and holds the address on which the suite listens for clients.

use crate::model::{Fault, Model};
use crate::wire::{self, id};
use std::io::{self, BufRead as _, BufReader};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// The source of the clients that connect to the suite.
#[derive(Clone, Debug)]
pub enum Dialler {
    /// The suite does not start the client. The client must reconnect for each case.
    Other,
    /// A shell command line. `{}` is replaced by the address, and `{port}` by the port.
    Command(String),
    /// The built-in model with a fault.
    Model(Fault),
}

/// The address on which the suite waits for a client, and how the client is started.
#[derive(Clone, Debug)]
pub struct Listening {
    /// The address. With port 0, each case uses another port.
    pub address: SocketAddr,
    /// The source of the client.
    pub dialler: Dialler,
    /// The time limit for a client to connect.
    pub patience: Duration,
}

impl Listening {
    /// Returns true if the suite starts a client for each case.
    #[must_use]
    pub fn starts_clients(&self) -> bool {
        !matches!(self.dialler, Dialler::Other)
    }

    /// Starts a client that connects to `address`. Returns `None` if the suite does not start clients.
    ///
    /// # Errors
    ///
    /// Returns an error if the program or the model cannot be started.
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

/// A peer that was started for a case. Dropping this stops the peer.
#[derive(Debug)]
pub enum Started {
    /// A program.
    Program(Program),
    /// The built-in model.
    Model(Model),
}

/// A running program. Dropping this kills the program.
#[derive(Debug)]
pub struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        // The program may have exited.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns a shell command with the address inserted. Its standard input stays open while it runs.
fn command(line: &str, address: SocketAddr) -> Command {
    let line = line.replace("{}", &address.to_string()).replace("{port}", &address.port().to_string());
    let mut command = Command::new("sh");
    command.args(["-c", &format!("exec {line}")]).stdin(Stdio::piped()).stderr(Stdio::null());
    command
}

/// Starts a server on a free local port, and waits for the first line that it prints.
///
/// # Errors
///
/// Returns an error if the program cannot be started, or prints nothing within `patience`.
pub fn server(line: &str, patience: Duration) -> io::Result<(Started, SocketAddr)> {
    let free = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = free.local_addr()?;
    drop(free);
    let mut child = command(line, address).stdout(Stdio::piped()).spawn()?;
    let output = child.stdout.take();
    let program = Started::Program(Program(child));
    let (ready, first) = mpsc::channel();
    std::thread::spawn(move || {
        // Read all output, because a full pipe would block the server.
        for line in output.map(BufReader::new).into_iter().flat_map(BufReader::lines) {
            if line.is_err() {
                break;
            }
            // The receiver exists only until the first line.
            let _ = ready.send(());
        }
    });
    match first.recv_timeout(patience) {
        Ok(()) => Ok((program, address)),
        Err(_) => Err(io::Error::other(format!(
            "the server `{line}` printed no line within {patience:?}, or exited before its first line"
        ))),
    }
}

/// Waits until a server answers a ping, because some servers print their first line before they listen.
///
/// If no ping is answered within `patience`, returns without an error, because the server may still pass cases.
///
/// # Errors
///
/// Returns an error if no socket can be opened.
pub fn wait_for_pong(server: SocketAddr, patience: Duration) -> io::Result<()> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    socket.set_read_timeout(Some(Duration::from_millis(50)))?;
    let began = Instant::now();
    while began.elapsed() < patience {
        // Sending may fail if the server is not listening yet.
        let _ = socket.send_to(&wire::ping(id::PING, 1, 1), server);
        if socket.recv_from(&mut [0; 2048]).is_ok() {
            break;
        }
    }
    Ok(())
}
