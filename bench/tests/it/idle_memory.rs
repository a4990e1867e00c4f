//! The memory of an idle connection in a server. The row `idle_memory` of `cargo xtask bench` measures the same with
//! more connections; this test detects a regression earlier.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The limit for an idle connection in bytes. The features that other crates of the workspace enable add about 130 to
/// the benchmark's value.
const MOST: u64 = 1_700;
/// The connections of a small and of a large server. The difference excludes the fixed cost of a server.
const FEW: u64 = 1_250;
const MANY: u64 = 4_250;
/// The number of measurements. A buffer that was used once and is kept sometimes makes a measurement too high, but
/// never too low.
const TIMES: usize = 3;

/// A role of the benchmark program, until it is dropped.
struct Role {
    child: Child,
    output: BufReader<ChildStdout>,
    /// The program ends when its input closes.
    _input: ChildStdin,
}

impl Role {
    fn start(line: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rakwire-bench"));
        command.args(line).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { child, output: BufReader::new(output), _input: input }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    /// Returns its anonymous memory in bytes.
    fn memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1_024
    }
}

impl Drop for Role {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Measures the memory of a server with this many idle connections.
fn with_connections(count: u64) -> u64 {
    let count = count.to_string();
    let mut server = Role::start(&["peer", "echo", "--port", "0", "--connections", &count]);
    let line = server.line();
    let port = line.strip_prefix("ready ").unwrap();
    let address = format!("127.0.0.1:{port}");
    let mut clients = Role::start(&["many-connections", &address, "--connections", &count]);
    assert_eq!(clients.line(), "connected");
    server.memory()
}

#[test]
fn an_idle_connection_takes_little_memory() {
    let [few, many] = [FEW, MANY].map(|count| (0..TIMES).map(|_| with_connections(count)).min().unwrap());
    let each = many.checked_sub(few).expect("more connections take more memory") / (MANY - FEW);
    assert!(each < MOST, "{each} bytes for each of {} connections", MANY - FEW);
}
