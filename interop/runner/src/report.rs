//! The results of a run as JSON and as lines of text.

use crate::cases;
use crate::cell::{Outcome, Verdict};
use crate::finding::By;
use crate::peers::Peer;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A cell of the matrix.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The name of the server.
    pub server: String,
    /// The name of the client.
    pub client: String,
    /// The name of the case.
    pub case: String,
    /// `pass`, `fail`, `limit`, `unsupported`, or `skipped` if the case `handshake` failed.
    pub verdict: String,
    /// The rule that the capture breaks.
    pub rule: String,
    /// The side that broke the rule.
    #[serde(default)]
    pub by: By,
    /// The section of docs/raknet.md that states the rule.
    pub section: String,
    /// The index of the datagram in the capture.
    pub datagram: Option<usize>,
    /// The offset in the datagram.
    pub offset: usize,
    /// The finding, or the reason why the case did not run.
    pub why: String,
    /// The known limit that explains the failure.
    pub limit: String,
    /// The number of captured datagrams.
    pub datagrams: usize,
    /// The exit status of the client; `None` if it was killed.
    pub client_status: Option<i32>,
    /// The duration of the run in seconds.
    pub seconds: f64,
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "server {}, client {}, {}", self.server, self.client, self.case)
    }
}

impl Cell {
    /// Creates a cell from its outcome.
    #[must_use]
    pub fn new(server: &Peer, client: &Peer, case: &str, outcome: &Outcome) -> Self {
        let cell = Self {
            server: server.name.clone(),
            client: client.name.clone(),
            case: case.to_owned(),
            datagrams: outcome.capture.records.len(),
            client_status: outcome.client_status,
            seconds: outcome.took.as_secs_f64(),
            ..Self::default()
        };
        match &outcome.verdict {
            Verdict::Pass => Self { verdict: "pass".to_owned(), ..cell },
            Verdict::Unsupported(why) => Self { verdict: "unsupported".to_owned(), why: why.clone(), ..cell },
            Verdict::Skipped => Self { verdict: "skipped".to_owned(), ..cell },
            Verdict::Fail(broken) => Self {
                verdict: "fail".to_owned(),
                rule: broken.rule.name.to_owned(),
                by: broken.by,
                section: broken.rule.section.to_owned(),
                datagram: broken.record,
                offset: broken.offset,
                why: broken.why.clone(),
                ..cell
            },
        }
    }

    /// Returns a one-line description of the cell.
    #[must_use]
    pub fn line(&self) -> String {
        let mut line = format!("{:11} {self} ({:.1} s)", self.verdict, self.seconds);
        if !self.rule.is_empty() {
            line += &format!(": {}", self.rule);
        }
        if !self.why.is_empty() {
            line += &format!(": {}", self.why);
        }
        if !self.limit.is_empty() {
            line += &format!(": {}", self.limit);
        }
        if let Some(datagram) = self.datagram {
            line += &format!(" (datagram {datagram}, offset {:#x})", self.offset);
        }
        line
    }
}

/// Merges the cells of several runs, in the order of the peers and cases, without applying known limits.
///
/// If several runs have the same cell, the last run counts.
#[must_use]
pub fn merged(documents: &[Document], peers: &[Peer]) -> Vec<Cell> {
    let mut cells: Vec<Cell> = Vec::new();
    for cell in documents.iter().flat_map(|document| &document.cells) {
        let is_same = |other: &Cell| {
            (&other.server, &other.client, &other.case) == (&cell.server, &cell.client, &cell.case)
        };
        let mut cell = cell.clone();
        if cell.verdict == "limit" {
            cell.limit.clear();
            let verdict = if cell.rule.is_empty() { "pass" } else { "fail" };
            verdict.clone_into(&mut cell.verdict);
        }
        match cells.iter_mut().find(|other| is_same(other)) {
            Some(known) => *known = cell,
            None => cells.push(cell),
        }
    }
    let place = |name: &str| peers.iter().position(|peer| peer.name == name);
    let case = |name: &str| cases::ALL.iter().position(|case| case.name == name);
    cells.sort_by_key(|cell| (place(&cell.server), place(&cell.client), case(&cell.case)));
    cells
}

/// Returns the seed of all documents.
///
/// # Errors
///
/// Returns an error if two documents have different seeds, because their paths had different faults.
pub fn common_seed(documents: &[Document]) -> Result<u64, String> {
    let mut seeds = documents.iter().map(|document| document.seed);
    let first = seeds.next().ok_or("no document")?;
    match seeds.find(|&seed| seed != first) {
        Some(other) => Err(format!("documents of the seeds {first} and {other} do not belong together")),
        None => Ok(first),
    }
}

/// A case, as listed in a document.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CaseRow {
    /// Its name.
    pub name: String,
    /// A one-line description of the case.
    pub about: String,
}

/// A peer, as listed in a document.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PeerRow {
    /// Its name.
    pub name: String,
    /// A description of the implementation.
    pub about: String,
    /// The package and its version.
    pub package: String,
    /// The protocol versions that it supports.
    pub protocols: Vec<u8>,
}

/// The results of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Document {
    /// The seed of the paths.
    pub seed: u64,
    /// The cases that ran.
    pub cases: Vec<CaseRow>,
    /// The peers of the matrix.
    pub peers: Vec<PeerRow>,
    /// The cells, by server, client and case.
    pub cells: Vec<Cell>,
}

impl Document {
    /// Collects the results of a run.
    #[must_use]
    pub fn new(seed: u64, cases: &[cases::Case], peers: &[Peer], cells: Vec<Cell>) -> Self {
        let case = |case: &cases::Case| CaseRow { name: case.name.to_owned(), about: case.about.to_owned() };
        let peer = |peer: &Peer| PeerRow {
            name: peer.name.clone(),
            about: peer.about.clone(),
            package: peer.package.clone(),
            protocols: peer.protocols.clone(),
        };
        Self { seed, cases: cases.iter().map(case).collect(), peers: peers.iter().map(peer).collect(), cells }
    }

    /// Returns the number of cells with a verdict.
    #[must_use]
    pub fn count(&self, verdict: &str) -> usize {
        self.cells.iter().filter(|cell| cell.verdict == verdict).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(case: &str, verdict: &str, rule: &str) -> Cell {
        Cell { case: case.into(), verdict: verdict.into(), rule: rule.into(), ..Cell::default() }
    }

    #[test]
    fn merged_documents_have_one_seed() {
        let document = |seed| Document::new(seed, &[], &[], Vec::new());
        assert_eq!(common_seed(&[document(7), document(7)]), Ok(7));
        assert!(common_seed(&[document(7), document(8)]).is_err());
    }

    #[test]
    fn later_results_replace_earlier_results_and_limits_are_applied_again() {
        let document = |cells: Vec<Cell>| Document::new(1, &[], &[], cells);
        let first = document(vec![cell("split", "limit", "order"), cell("handshake", "fail", "mtu")]);
        let second = document(vec![cell("handshake", "pass", ""), cell("loss", "limit", "")]);
        let merged = merged(&[first, second], &[]);
        let expected =
            [cell("handshake", "pass", ""), cell("split", "fail", "order"), cell("loss", "pass", "")];
        assert_eq!(merged, expected);
    }
}
