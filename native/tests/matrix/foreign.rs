//! The foreign programs.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use rakwire_native::{CookiePolicy, Reliability};
use serde_json::Value;

use crate::cases::{Cell, name};

/// A program around a foreign RakNet.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    /// What it is.
    pub(crate) about: &'static str,
    /// The variable of `interop/setup.sh` that names its version.
    version: &'static str,
    pub(crate) protocol: u8,
    /// Whether messages can be sent with receipts.
    pub(crate) receipts: bool,
    /// What our server must ask of its clients.
    pub(crate) cookies: CookiePolicy,
}

pub(crate) static PEERS: [&Peer; 3] = [
    &Peer {
        name: "cpp",
        about: "C++ RakNet 4.081, patched",
        version: "cpp_version",
        protocol: 6,
        receipts: true,
        cookies: CookiePolicy::Required,
    },
    &Peer {
        name: "rust-raknet",
        about: "rust-raknet",
        version: "rust_raknet_version",
        protocol: 10,
        receipts: false,
        cookies: CookiePolicy::Off,
    },
    &Peer {
        name: "python",
        about: "C++ RakNet 4.081 in a Python wheel",
        version: "python_version",
        protocol: 11,
        receipts: true,
        cookies: CookiePolicy::Required,
    },
];

pub(crate) fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

impl Peer {
    fn program(&self) -> PathBuf {
        let folder = std::env::var_os("INTEROP_BIN_DIR")
            .map_or_else(|| workspace().join("target/interop/bin"), |folder| workspace().join(folder));
        let program = folder.join(format!("{}-peer", self.name));
        assert!(
            program.is_file(),
            "{} is missing: run `bash interop/setup.sh`, or set INTEROP_BIN_DIR",
            program.display()
        );
        program
    }

    /// The package and the version that `interop/setup.sh` fetches.
    pub(crate) fn package(&self) -> String {
        let script = std::fs::read_to_string(workspace().join("interop/setup.sh")).expect("the script");
        let line = script.lines().find_map(|line| line.strip_prefix(self.version)?.strip_prefix('='));
        line.expect("the version").replace("==", " ").replace('@', " ")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.program());
        // Nobody reads what they complain of; a full pipe would stop them.
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        command
    }

    /// Starts a server that echoes with a reliability.
    pub(crate) fn serve(&self, echo: Reliability) -> Result<Running, String> {
        let (protocol, reliability) = (self.protocol.to_string(), name(echo));
        let arguments = ["server", "--port", "0", "--protocol", &protocol, "--reliability", reliability];
        let mut child = self.command(&arguments).spawn().map_err(|error| error.to_string())?;
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().ok_or("no output")?;
        let mut running = Running { child, _stdin: stdin, address: ([127, 0, 0, 1], 0).into() };
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).map_err(|error| error.to_string())?;
        let port = line.strip_prefix("ready ").and_then(|port| port.trim().parse().ok());
        running.address.set_port(port.ok_or_else(|| format!("{line:?} announces no port"))?);
        Ok(running)
    }

    /// Runs a client to its end and returns its verdict.
    pub(crate) fn connect(&self, to: SocketAddr, cell: Cell) -> Result<Value, String> {
        let case = cell.case;
        let number = |number: u64| number.to_string();
        let (to, protocol) = (to.to_string(), number(self.protocol.into()));
        let (count, size) = (number(case.count.into()), number(case.size as u64));
        let (reliability, timeout) = (name(case.reliability), number(cell.patience().as_secs()));
        let what = ["client", &to, "--protocol", &protocol, "--reliability", reliability];
        let how_much = ["--count", &count, "--size", &size, "--window", "256", "--timeout", &timeout];
        let arguments = [&what[..], &how_much].concat();
        let child = self.command(&arguments).spawn().map_err(|error| error.to_string())?;
        let output = child.wait_with_output().map_err(|error| error.to_string())?;
        serde_json::from_slice(&output.stdout).map_err(|error| format!("no verdict: {error}"))
    }
}

/// A server that runs until it is dropped.
pub(crate) struct Running {
    child: Child,
    // The programs end when their standard input does.
    _stdin: Option<ChildStdin>,
    pub(crate) address: SocketAddr,
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
