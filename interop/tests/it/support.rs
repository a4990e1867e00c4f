//! Programs that tests start.

use std::env::{self, consts::EXE_SUFFIX};
use std::fmt::Display;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

/// The time limit for every program, longer than it takes on the slowest machine.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(120);

/// Returns the path of a foreign peer's program, which `interop/setup.sh` builds.
pub(crate) fn peer(name: &str) -> PathBuf {
    let folder =
        env::var_os("INTEROP_BIN_DIR").expect("INTEROP_BIN_DIR names the folder of the foreign peers");
    let program = PathBuf::from(folder).join(format!("{name}-peer"));
    assert!(program.is_file(), "{} is missing: run `bash interop/setup.sh`", program.display());
    program
}

/// Returns the program `rakwire`.
pub(crate) fn rakwire() -> PathBuf {
    program("rakwire")
}

/// Returns a program of this repository, which cargo builds next to the folder of the test binaries.
pub(crate) fn program(name: &str) -> PathBuf {
    let test = env::current_exe().expect("a running program");
    let folder = test.ancestors().nth(2).expect("the target folder of Cargo");
    let program = folder.join(format!("{name}{EXE_SUFFIX}"));
    assert!(program.is_file(), "{} is missing: run `cargo build --workspace --bins`", program.display());
    program
}

/// A foreign server that runs until it is dropped.
pub(crate) struct Server {
    child: Child,
    // Kept open, because the programs exit when their standard input closes.
    stdin: ChildStdin,
    lines: Receiver<String>,
    pub(crate) address: SocketAddr,
}

impl Server {
    /// Starts a program and waits until it announces its address.
    pub(crate) fn start(name: &str, arguments: &[&str]) -> Result<Self, String> {
        let mut child = Command::new(peer(name))
            .args(["server", "--port", "0"])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Discarded, because this pipe is not read and a full pipe would block the program.
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| error.to_string())?;
        let stdin = child.stdin.take().ok_or("no input")?;
        let stdout = child.stdout.take().ok_or("no output")?;
        let lines = lines_of(stdout);
        let mut server = Self { child, stdin, lines, address: ([127, 0, 0, 1], 0).into() };
        let line = server.next_line()?;
        let port = line.strip_prefix("ready ").and_then(|port| port.parse().ok());
        server.address.set_port(port.ok_or_else(|| format!("{line:?} announces no port"))?);
        Ok(server)
    }

    /// Writes a line to the program.
    pub(crate) fn write_line(&mut self, line: impl Display) {
        writeln!(self.stdin, "{line}").expect("the program reads its input");
    }

    /// Waits for the next line that the program prints.
    pub(crate) fn next_line(&self) -> Result<String, String> {
        self.lines.recv_timeout(TIME_LIMIT).map_err(|error| error.to_string())
    }

    /// Returns the lines that the program has printed and that have not been read yet.
    pub(crate) fn printed_lines(&self) -> impl Iterator<Item = String> {
        self.lines.try_iter()
    }
}

/// Reads the output of a program by lines.
fn lines_of(stdout: ChildStdout) -> Receiver<String> {
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

impl Drop for Server {
    fn drop(&mut self) {
        // The program may already have exited.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a program until it exits, and returns its output.
pub(crate) fn run(program: &Path, arguments: &[&str]) -> Result<Output, String> {
    Command::new(program).args(arguments).stdin(Stdio::null()).output().map_err(|error| error.to_string())
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}
