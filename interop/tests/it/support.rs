//! Programs that tests start.

use std::env::{self, consts::EXE_SUFFIX};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// Longer than any program here takes on the slowest machine.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(120);

/// The program around a foreign RakNet, as `setup.sh` builds it.
pub(crate) fn peer(name: &str) -> PathBuf {
    let folder =
        env::var_os("INTEROP_BIN_DIR").expect("INTEROP_BIN_DIR names the folder of the foreign peers");
    let program = PathBuf::from(folder).join(format!("{name}-peer"));
    assert!(program.is_file(), "{} is missing: run `bash interop/setup.sh`", program.display());
    program
}

/// The program `rakwire`.
pub(crate) fn rakwire() -> PathBuf {
    program("rakwire")
}

/// A program of this repository, which cargo puts beside the folder of the tests.
pub(crate) fn program(name: &str) -> PathBuf {
    let test = env::current_exe().expect("a running program");
    let folder = test.ancestors().nth(2).expect("a folder of all that is built");
    let program = folder.join(format!("{name}{EXE_SUFFIX}"));
    assert!(program.is_file(), "{} is missing: run `cargo build --workspace --bins`", program.display());
    program
}

/// A foreign server that runs until it is dropped.
pub(crate) struct Server {
    child: Child,
    // The programs end when their standard input does.
    _stdin: ChildStdin,
    pub(crate) address: SocketAddr,
}

impl Server {
    /// Starts a program and waits until it says where it listens.
    pub(crate) fn start(name: &str, arguments: &[&str]) -> Result<Self, String> {
        let mut child = Command::new(peer(name))
            .args(["server", "--port", "0"])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Nobody reads what they complain of; a full pipe would stop them.
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| error.to_string())?;
        let stdin = child.stdin.take().ok_or("no input")?;
        let stdout = child.stdout.take().ok_or("no output")?;
        let mut server = Self { child, _stdin: stdin, address: ([127, 0, 0, 1], 0).into() };
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            let mut line = String::new();
            let read = BufReader::new(stdout).read_line(&mut line).map(|_| line);
            sender.send(read)
        });
        let line = receiver.recv_timeout(TIME_LIMIT).map_err(|error| error.to_string())?;
        let line = line.map_err(|error| error.to_string())?;
        let port = line.strip_prefix("ready ").and_then(|port| port.trim().parse().ok());
        server.address.set_port(port.ok_or_else(|| format!("{line:?} announces no port"))?);
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a program to its end.
pub(crate) fn run(program: &Path, arguments: &[&str]) -> Result<Output, String> {
    Command::new(program).args(arguments).stdin(Stdio::null()).output().map_err(|error| error.to_string())
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}
