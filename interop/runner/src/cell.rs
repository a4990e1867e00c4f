//! Runs one cell of the matrix: a server, a client and a test case.

use crate::capture::{Capture, End};
use crate::finding::Broken;
use crate::judge::{Task, judge};
use crate::peers::{self, Peer, Start, Started, UNSUPPORTED};
use crate::proxy::Proxy;
use crate::rules;
use std::io;
use std::path::Path;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

/// The time that datagrams in flight have to arrive after the client has exited.
const REST: Duration = Duration::from_millis(200);
/// The interval at which idle peers send pings.
const PING_INTERVAL: Duration = Duration::from_secs(5);
/// The time for which a server must send nothing after its client has disconnected. It is longer than the
/// ping interval, because a server that wrongly keeps the connection may send its next datagram only then.
const SILENCE: Duration = Duration::from_secs(6);
const _: () = assert!(SILENCE.as_millis() > PING_INTERVAL.as_millis());

/// The result of a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The capture follows all rules.
    Pass,
    /// The capture breaks a rule.
    Fail(Broken),
    /// A peer does not support the case, for this reason.
    Unsupported(String),
    /// The case did not run, because the case `handshake` failed.
    Skipped,
}

/// The result of a cell with its capture.
#[derive(Debug)]
pub struct Outcome {
    /// The verdict of the cell.
    pub verdict: Verdict,
    /// The captured datagrams.
    pub capture: Capture,
    /// The exit status of the client; `None` if it was killed. It distinguishes a program that fails to start
    /// from a program that sends nothing.
    pub client_status: Option<i32>,
    /// The duration of the run.
    pub took: Duration,
}

impl Outcome {
    fn without_capture(verdict: Verdict, began: Instant) -> Self {
        Self { verdict, capture: Capture::default(), client_status: None, took: began.elapsed() }
    }
}

/// Returns the reason if a client counts as not started, because it failed before its first datagram;
/// otherwise `None`.
fn not_started(status: Option<i32>, capture: &Capture) -> Option<String> {
    let status = status.filter(|&status| status != 0 && capture.of(End::Client).next().is_none())?;
    Some(match status {
        UNSUPPORTED => peers::ALWAYS_SUPPORTED.to_owned(),
        _ => format!("the client exited with status {status} before it sent a datagram"),
    })
}

/// Runs a cell. The output of the programs is appended to the log.
///
/// # Errors
///
/// Returns an error if a socket cannot be opened or a program cannot be started.
pub fn run(server: &Peer, client: &Peer, task: &Task, seed: u64, log: Option<&Path>) -> io::Result<Outcome> {
    let began = Instant::now();
    let start = Start { case: &task.case, protocol: task.protocol, seed, log };
    let running = match peers::serve(server, &start)? {
        Started::Ready(running) => running,
        Started::Unsupported => {
            let verdict = Verdict::Unsupported(format!("the server {} does not support it", server.name));
            return Ok(Outcome::without_capture(verdict, began));
        }
        Started::Failed(why) => {
            let verdict = Verdict::Fail(Broken::missing(rules::STARTED, End::Server, why));
            return Ok(Outcome::without_capture(verdict, began));
        }
    };
    let proxy = Proxy::start(running.address, task.case.path, seed)?;
    let status = peers::dial(client, &start, proxy.address)?;
    let client_status = status.as_ref().and_then(ExitStatus::code);
    let is_unsupported = client_status == Some(UNSUPPORTED) && !task.case.is_about_the_handshake();
    if !is_unsupported {
        std::thread::sleep(if task.case.is_about_the_end() { SILENCE } else { REST });
    }
    let capture = proxy.finish()?;
    let verdict = if is_unsupported {
        Verdict::Unsupported(format!("the client {} does not support it", client.name))
    } else if let Some(why) = not_started(client_status, &capture) {
        Verdict::Fail(Broken::missing(rules::STARTED, End::Client, why))
    } else {
        judge(task, &capture).map_or_else(Verdict::Fail, |()| Verdict::Pass)
    };
    Ok(Outcome { verdict, capture, client_status, took: began.elapsed() })
}
