//! The work that each library has to do, and one measurement of it.

use std::process::Command;

use anyhow::{Result, ensure};
use serde::Serialize;

use crate::pairing::{Bench, Network, Pattern, RoleReport, Run, Workload};
use crate::process::Program;

/// The duration for which unreliable messages are sent, in seconds.
const SECONDS: f64 = 1.0;
const QUICK_SECONDS: f64 = 0.1;

/// The kind of work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    /// Reliable ordered messages.
    Reliable(Workload),
    /// As many unreliable messages as the library accepts in `seconds`.
    Unreliable { size: usize, seconds: f64 },
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Work {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
}

/// The result of one measurement.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Measured {
    /// The number of messages that arrived.
    pub(super) messages: f64,
    #[serde(flatten)]
    pub(super) run: Run,
}

impl Work {
    /// Returns all work, or a small amount of each kind if `quick` is true.
    pub(super) fn all(quick: bool) -> [Self; 6] {
        let count = |full: u32| if quick { full / 50 } else { full };
        let reliable = |pattern, full, size, network| {
            Kind::Reliable(Workload { pattern, count: count(full), size, network })
        };
        let seconds = if quick { QUICK_SECONDS } else { SECONDS };
        [
            Self { name: "messages", kind: reliable(Pattern::Blast, 100_000, 100, Network::Loopback) },
            Self { name: "bulk", kind: reliable(Pattern::Blast, 1_000, 10_000, Network::Loopback) },
            Self { name: "unreliable", kind: Kind::Unreliable { size: 100, seconds } },
            Self { name: "round-trips", kind: reliable(Pattern::PingPong, 10_000, 64, Network::Loopback) },
            Self { name: "loss-1", kind: reliable(Pattern::Blast, 20_000, 100, Network::Lossy(0.01)) },
            Self { name: "loss-5", kind: reliable(Pattern::Blast, 20_000, 100, Network::Lossy(0.05)) },
        ]
    }

    /// Runs one measurement between two programs of a library.
    pub(super) fn measure(
        &self,
        bench: &Bench,
        command: impl Fn() -> Result<Command>,
        seed: u64,
    ) -> Result<Measured> {
        match self.kind {
            Kind::Reliable(workload) => {
                let run = bench.run_between(command()?, command()?, &workload, seed)?;
                Ok(Measured { messages: workload.count.into(), run })
            }
            Kind::Unreliable { size, seconds } => flood(bench, [command()?, command()?], size, seconds),
        }
    }
}

fn flood(
    bench: &Bench,
    [mut server, mut client]: [Command; 2],
    size: usize,
    seconds: f64,
) -> Result<Measured> {
    server.args(["count", "--port", "0"]);
    let server = Program::start(server, bench.cores.receiver, bench.limit)?;
    let port = server.port()?;
    client.args(["flood", &format!("127.0.0.1:{port}")]);
    client.args(["--size", &size.to_string(), "--seconds", &seconds.to_string()]);
    let mut client = Program::start(client, bench.cores.sender, bench.limit)?;
    client.connected()?;
    let before = (client.cpu()?, server.cpu()?);
    client.go()?;
    let sent: RoleReport = serde_json::from_str(&client.line()?)?;
    let counted: RoleReport = serde_json::from_str(&server.line()?)?;
    let after = (client.cpu()?, server.cpu()?);
    ensure!(
        counted.messages <= sent.messages,
        "more messages arrived than were sent: {} of {}",
        counted.messages,
        sent.messages
    );
    let run = Run {
        seconds: counted.seconds.max(sent.seconds),
        client_cpu: (after.0 - before.0).as_secs_f64(),
        server_cpu: (after.1 - before.1).as_secs_f64(),
        ..Run::default()
    };
    Ok(Measured { messages: counted.messages as f64, run })
}
