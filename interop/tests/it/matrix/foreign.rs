//! The foreign programs.

use std::net::SocketAddr;

use rakwire_native::{CookiePolicy, Reliability};
use serde_json::Value;

use super::cases::{Cell, name};
use crate::support::{Server, peer, run};

/// The script that fetches and builds the foreign programs.
const SETUP: &str = include_str!("../../../setup.sh");

/// A program that uses another RakNet implementation.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    /// Its description.
    pub(crate) about: &'static str,
    /// The variable of `setup.sh` that names its version.
    version: &'static str,
    pub(crate) protocol: u8,
    /// True if messages can be sent with receipts.
    pub(crate) receipts: bool,
    /// The cookie policy of our server for clients of this peer.
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

impl Peer {
    /// Returns the package and the version that `setup.sh` fetches.
    pub(crate) fn package(&self) -> String {
        let line = SETUP.lines().find_map(|line| line.strip_prefix(self.version)?.strip_prefix('='));
        line.expect("a line with the version").replace("==", " ").replace('@', " ")
    }

    /// Starts a server that echoes with a reliability.
    pub(crate) fn serve(&self, echo: Reliability) -> Result<Server, String> {
        Server::start(self.name, &["--protocol", &self.protocol.to_string(), "--reliability", name(echo)])
    }

    /// Runs a client to its end and returns its verdict.
    pub(crate) fn connect(&self, to: SocketAddr, cell: Cell) -> Result<Value, String> {
        let case = cell.case;
        let number = |number: u64| number.to_string();
        let (to, protocol) = (to.to_string(), number(self.protocol.into()));
        let (count, size) = (number(case.count.into()), number(case.size as u64));
        let (reliability, timeout) = (name(case.reliability), number(cell.time_limit().as_secs()));
        let what = ["client", &to, "--protocol", &protocol, "--reliability", reliability];
        let how_much = ["--count", &count, "--size", &size, "--window", "256", "--timeout", &timeout];
        let arguments = [&what[..], &how_much].concat();
        let output = run(&peer(self.name), &arguments)?;
        serde_json::from_slice(&output.stdout).map_err(|error| format!("no verdict: {error}"))
    }
}
