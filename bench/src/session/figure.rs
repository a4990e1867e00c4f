//! Computes rows from the runs of all pairings.

use super::runner::Found;
use crate::pairing::{Pairing, Run, Workload, median};
use crate::report::{Best, Better, Entry, Row};

/// A value that is computed from each run of a pairing.
#[derive(Clone, Copy, Debug)]
pub(super) enum Figure {
    MessagesPerSecond,
    MegabytesPerSecond,
    Median,
    Percentile99,
}

impl Figure {
    const fn unit(self) -> &'static str {
        match self {
            Self::MessagesPerSecond => "messages/s",
            Self::MegabytesPerSecond => "MB/s",
            Self::Median | Self::Percentile99 => "µs",
        }
    }

    const fn better(self) -> Better {
        match self {
            Self::MessagesPerSecond | Self::MegabytesPerSecond => Better::Higher,
            Self::Median | Self::Percentile99 => Better::Lower,
        }
    }

    fn of(self, run: &Run, workload: &Workload) -> Option<f64> {
        let count = f64::from(workload.count);
        match self {
            Self::MessagesPerSecond => Some(count / run.seconds),
            Self::MegabytesPerSecond => Some(count * workload.size as f64 / 1e6 / run.seconds),
            Self::Median => run.p50_us,
            Self::Percentile99 => run.p99_us,
        }
    }

    /// Returns a row with the median of this figure for each pairing.
    pub(super) fn row(self, name: &str, found: &[Found], workload: &Workload) -> Row {
        let entries: Vec<Entry> = found.iter().map(|found| self.entry(found, workload)).collect();
        let ours = entries.iter().find(|entry| entry.pairing == Pairing::OURS);
        let value = ours.and_then(|entry| entry.value).unwrap_or(f64::NAN);
        let cpu = ours.and_then(|entry| median(entry.runs.iter().map(|run| run.client_cpu + run.server_cpu)));
        let row = Row::new(name, value, self.unit(), self.better()).compared_with_peer(self.best(&entries));
        Row { cpu_us: cpu.map(|cpu| cpu * 1e6 / f64::from(workload.count)), pairings: entries, ..row }
    }

    fn entry(self, (pairing, runs): &Found, workload: &Workload) -> Entry {
        let pairing = *pairing;
        match runs {
            Ok(runs) => {
                let value = median(runs.iter().filter_map(|run| self.of(run, workload)));
                Entry { pairing, value, error: None, runs: runs.clone() }
            }
            Err(error) => Entry { pairing, value: None, error: Some(format!("{error:#}")), runs: Vec::new() },
        }
    }

    /// Returns the best result of a pairing without rakwire.
    fn best(self, entries: &[Entry]) -> Option<Best> {
        let foreign = entries.iter().filter(|entry| entry.pairing.is_foreign());
        let values =
            foreign.filter_map(|entry| Some(Best { name: entry.pairing.to_string(), value: entry.value? }));
        values.max_by(|a, b| self.better().compare(a.value, b.value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pairing::{Network, Pattern, Peer};

    fn found(client: Peer, server: Peer, seconds: &[f64]) -> Found {
        let runs = seconds.iter().map(|seconds| Run { seconds: *seconds, ..Run::default() });
        (Pairing { client, server }, Ok(runs.collect()))
    }

    #[test]
    fn a_row_compares_our_median_with_the_best_of_others() {
        let workload = Workload { pattern: Pattern::Blast, count: 100, size: 10, network: Network::Loopback };
        let all = [
            found(Peer::Rakwire, Peer::Rakwire, &[1.0, 9.0, 2.0]),
            found(Peer::Rakwire, Peer::Cpp, &[0.1]),
            found(Peer::Cpp, Peer::Cpp, &[4.0]),
            found(Peer::Cpp, Peer::RustRaknet, &[8.0]),
            (Pairing { client: Peer::RustRaknet, server: Peer::Cpp }, Err(anyhow::anyhow!("no"))),
        ];
        let row = Figure::MessagesPerSecond.row("a", &all, &workload);
        assert_eq!((row.value, row.ratio_to_best_peer), (50.0, Some(2.0)));
        assert_eq!(row.best_peer.map(|best| best.name).as_deref(), Some("cpp to cpp"));
        assert_eq!(row.pairings.iter().filter(|entry| entry.error.is_some()).count(), 1);
    }
}
