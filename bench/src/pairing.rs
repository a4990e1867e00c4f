//! The pairings of implementations, and one measurement of a pairing.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use rakwire::sim::{Conditions, GilbertElliott};
use serde::{Deserialize, Serialize};

use crate::process::{Cores, Program};
use crate::proxy::Proxy;

/// A pairing is not run again after its runs have taken at least this many seconds in total.
const ENOUGH: f64 = 15.0;

/// A RakNet implementation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Peer {
    Rakwire,
    Cpp,
    RustRaknet,
    TokioRaknet,
}

impl Peer {
    pub(crate) const ALL: [Self; 4] = [Self::Rakwire, Self::Cpp, Self::RustRaknet, Self::TokioRaknet];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Rakwire => "rakwire",
            Self::Cpp => "cpp",
            Self::RustRaknet => "rust-raknet",
            Self::TokioRaknet => "tokio-raknet",
        }
    }

    /// Returns true if quick measurements include this implementation.
    pub(crate) const fn is_quick(self) -> bool {
        matches!(self, Self::Rakwire | Self::Cpp)
    }

    pub(crate) fn command(self, peers: &Path) -> Result<Command> {
        if self == Self::Rakwire {
            let mut command = itself()?;
            command.arg("peer");
            return Ok(command);
        }
        let program = peers.join(format!("{}-peer", self.name()));
        if !program.is_file() {
            anyhow::bail!("{} is missing: run `bash interop/setup.sh`", program.display());
        }
        Ok(Command::new(program))
    }
}

/// Returns a command that runs this program.
pub(crate) fn itself() -> Result<Command> {
    Ok(Command::new(std::env::current_exe().context("the path of this program is unknown")?))
}

/// A client and a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Pairing {
    pub(crate) client: Peer,
    pub(crate) server: Peer,
}

impl Pairing {
    pub(crate) const OURS: Self = Self { client: Peer::Rakwire, server: Peer::Rakwire };

    pub(crate) fn all() -> impl Iterator<Item = Self> {
        Peer::ALL.into_iter().flat_map(|client| Peer::ALL.map(|server| Self { client, server }))
    }

    /// Returns true if exactly one side is rakwire.
    pub(crate) fn is_mixed(self) -> bool {
        (self.client == Peer::Rakwire) != (self.server == Peer::Rakwire)
    }

    /// Returns true if neither side is rakwire.
    pub(crate) fn is_foreign(self) -> bool {
        self.client != Peer::Rakwire && self.server != Peer::Rakwire
    }
}

impl std::fmt::Display for Pairing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} to {}", self.client.name(), self.server.name())
    }
}

/// The traffic pattern of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pattern {
    Blast,
    PingPong,
}

/// The network between client and server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Network {
    Loopback,
    /// A latency of 25 ms and this loss rate (0 to 1) in each direction.
    Lossy(f64),
    /// A latency of 25 ms in each direction, and losses in bursts.
    Bursts,
}

impl Network {
    /// Loses 4.8 % of the datagrams, in bursts of five on average.
    const BURSTS: GilbertElliott = GilbertElliott { good_to_bad: 0.01, bad_to_good: 0.2 };

    /// Returns the conditions of the simulated path, or `None` for loopback.
    fn conditions(self) -> Option<Conditions> {
        let path = Conditions { latency: Duration::from_millis(25), ..Conditions::default() };
        match self {
            Self::Loopback => None,
            Self::Lossy(loss) => Some(Conditions { loss, ..path }),
            Self::Bursts => Some(Conditions { bursts: Some(Self::BURSTS), ..path }),
        }
    }
}

/// The workload of a measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Workload {
    pub(crate) pattern: Pattern,
    pub(crate) count: u32,
    pub(crate) size: usize,
    pub(crate) network: Network,
}

/// The result that a program prints.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct RoleReport {
    pub(crate) messages: u64,
    pub(crate) seconds: f64,
    pub(crate) p50_us: Option<f64>,
    pub(crate) p99_us: Option<f64>,
}

/// One measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Run {
    pub(crate) seconds: f64,
    /// Percentiles of delivery times or of round trips, in microseconds.
    pub(crate) p50_us: Option<f64>,
    pub(crate) p99_us: Option<f64>,
    /// CPU seconds of the client and of the server.
    pub(crate) client_cpu: f64,
    pub(crate) server_cpu: f64,
}

/// The settings of a measurement.
#[derive(Clone, Debug)]
pub(crate) struct Bench {
    pub(crate) peers: PathBuf,
    pub(crate) cores: Cores,
    pub(crate) runs: u32,
    pub(crate) limit: Duration,
}

impl Bench {
    /// Returns the same settings with another time limit.
    pub(crate) fn with_limit(&self, limit: Duration) -> Self {
        Self { limit, ..self.clone() }
    }

    /// Runs one measurement of a pairing.
    pub(crate) fn run(&self, pairing: Pairing, workload: &Workload, seed: u64) -> Result<Run> {
        let (server, client) = (pairing.server.command(&self.peers)?, pairing.client.command(&self.peers)?);
        self.run_between(server, client, workload, seed)
    }

    /// Runs one measurement between two programs. Appends the roles to their commands.
    pub(crate) fn run_between(
        &self,
        mut server: Command,
        mut client: Command,
        workload: &Workload,
        seed: u64,
    ) -> Result<Run> {
        let (server_role, client_role) = match workload.pattern {
            Pattern::Blast => ("sink", "blast"),
            Pattern::PingPong => ("echo", "pingpong"),
        };
        let mut arguments = vec![
            "--count".to_owned(),
            workload.count.to_string(),
            "--size".to_owned(),
            workload.size.to_string(),
        ];
        if workload.network != Network::Loopback {
            arguments.push("--timed".to_owned());
        }
        server.args([server_role, "--port", "0"]).args(&arguments);
        let server = Program::start(server, self.cores.receiver, self.limit)?;
        let mut port = server.port()?;
        let conditions = workload.network.conditions();
        let proxy = conditions.map(|conditions| Proxy::start(port, conditions, seed)).transpose()?;
        if let Some(proxy) = &proxy {
            port = proxy.port;
        }
        client.args([client_role, &format!("127.0.0.1:{port}")]).args(&arguments);
        let mut client = Program::start(client, self.cores.sender, self.limit)?;
        client.connected()?;
        let before = (client.cpu()?, server.cpu()?);
        client.go()?;
        let report: RoleReport = serde_json::from_str(&client.line()?)?;
        let after = (client.cpu()?, server.cpu()?);
        let with_percentiles = match workload.pattern {
            Pattern::Blast => serde_json::from_str(&server.line()?)?,
            Pattern::PingPong => report,
        };
        Ok(Run {
            seconds: report.seconds,
            p50_us: with_percentiles.p50_us,
            p99_us: with_percentiles.p99_us,
            client_cpu: (after.0 - before.0).as_secs_f64(),
            server_cpu: (after.1 - before.1).as_secs_f64(),
        })
    }

    /// Measures `self.runs` times, and stops early once `are_enough` returns true. Returns all runs.
    ///
    /// If the first run was slow because of the network rather than the CPU, the remaining runs execute in parallel.
    pub(crate) fn runs(&self, pairing: Pairing, workload: &Workload) -> Result<Vec<Run>> {
        let first = self.run(pairing, workload, 0)?;
        let busy = (first.client_cpu.max(first.server_cpu)) * f64::from(self.runs) / first.seconds;
        if first.seconds > 4.0 && busy < 0.6 && !are_enough(&[first]) {
            return self.in_parallel(pairing, workload, first);
        }
        let mut runs = vec![first];
        for seed in 1..u64::from(self.runs) {
            if !are_enough(&runs) {
                runs.push(self.run(pairing, workload, seed)?);
            }
        }
        Ok(runs)
    }

    /// Runs all measurements after the first one in parallel.
    fn in_parallel(&self, pairing: Pairing, workload: &Workload, first: Run) -> Result<Vec<Run>> {
        let run = |seed| self.run(pairing, workload, seed);
        let others: Result<Vec<Run>> = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (1..u64::from(self.runs)).map(|seed| scope.spawn(move || run(seed))).collect();
            let join = |thread: std::thread::ScopedJoinHandle<'_, Result<Run>>| {
                thread.join().unwrap_or_else(|_| Err(anyhow::anyhow!("a measurement panicked")))
            };
            threads.into_iter().map(join).collect()
        });
        let mut runs = others?;
        runs.push(first);
        Ok(runs)
    }
}

/// Returns true if the runs took at least [`ENOUGH`] seconds in total.
pub(crate) fn are_enough(runs: &[Run]) -> bool {
    runs.iter().map(|run| run.seconds).sum::<f64>() >= ENOUGH
}

/// Returns the median, or the lower of the two middle values.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len().saturating_sub(1) / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_enough_after_15_seconds_in_total() {
        let run = |seconds| Run { seconds, p50_us: None, p99_us: None, client_cpu: 0.0, server_cpu: 0.0 };
        assert!(!are_enough(&[]) && !are_enough(&[run(8.0)]));
        assert!(are_enough(&[run(8.0), run(7.0)]) && are_enough(&[run(27.0)]));
    }

    #[test]
    fn there_are_16_pairings_of_which_6_are_mixed_and_9_foreign() {
        let all: std::collections::BTreeSet<_> = Pairing::all().collect();
        assert_eq!(all.len(), 16);
        assert_eq!(all.iter().filter(|pairing| pairing.is_foreign()).count(), 9);
        assert!(all.contains(&Pairing::OURS) && !Pairing::OURS.is_foreign());
        assert_eq!(all.iter().filter(|pairing| pairing.is_mixed()).count(), 6);
    }

    #[test]
    fn the_median_is_the_middle_or_lower_middle_value() {
        assert_eq!(median([3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median([4.0, 1.0]), Some(1.0));
        assert_eq!(median([]), None);
    }
}
