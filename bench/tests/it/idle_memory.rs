//! What an idle connection takes of a server's memory. The row `idle_memory` of `cargo xtask bench` measures the same with more
//! connections; this finds a change that makes it worse before anybody measures.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// What an idle connection may take, in bytes. With the features that other crates of the workspace ask for, it takes about 130 more than
/// in the benchmark.
const MOST: u64 = 1_700;
/// Connections of a small server and of a large one. The difference has no part of what every server takes.
const FEW: u64 = 1_250;
const MANY: u64 = 4_250;
/// How often both are measured. A buffer that was used once and is kept makes a measurement too high now and then, none too low.
const TIMES: usize = 3;

/// A role of the benchmark program, until it is dropped.
struct Role {
    child: Child,
    output: BufReader<ChildStdout>,
    /// The program ends with its input.
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

    /// Its anonymous memory in bytes.
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

/// The memory of a server with so many idle connections.
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
