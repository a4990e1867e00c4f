//! Limits the memory of an idle connection in a server.
//!
//! The row `idle_memory` of `cargo xtask bench` measures it with more connections. This test detects a regression
//! earlier, because it runs with the other tests.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The limit for the memory of an idle connection in bytes. Results on an idle machine are 1,540 to 1,640; beside other
/// load the server's queues grow further while clients connect, and 1,701 was measured.
const MOST: u64 = 1_800;
/// The number of connections of the small server. The difference to the large one excludes the fixed cost of a server.
const FEW: u64 = 1_250;
/// The number of connections of the large server.
const MANY: u64 = 4_250;
/// The number of measurements; the lowest result is used. A buffer that the server keeps after a single use can only
/// increase a result.
const TIMES: usize = 3;

/// A running role of the benchmark program, killed on drop.
struct Role {
    child: Child,
    output: BufReader<ChildStdout>,
    /// Kept open, because the program exits when its standard input closes.
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

    /// Returns the anonymous memory of the program (`RssAnon`) in bytes.
    fn memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1_024
    }
}

impl Drop for Role {
    fn drop(&mut self) {
        // Errors are ignored: the program may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Measures the memory of a server with `count` idle connections, in bytes.
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
fn an_idle_connection_takes_less_than_1800_bytes() {
    let [few, many] = [FEW, MANY].map(|count| (0..TIMES).map(|_| with_connections(count)).min().unwrap());
    let each =
        many.checked_sub(few).expect("a server with more connections takes more memory") / (MANY - FEW);
    assert!(each < MOST, "an idle connection takes {each} bytes, and the limit is {MOST}");
}
