//! Known limits of peers: failures that are expected.

use crate::report::Cell;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io;
use std::path::Path;

/// A failure that is expected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limit {
    /// The servers, or `*`.
    pub servers: Vec<String>,
    /// The clients, or `*`.
    pub clients: Vec<String>,
    /// The cases, or `*`.
    pub cases: Vec<String>,
    /// The rules that captures break.
    pub rules: Vec<String>,
    /// The reason, a sentence about the peer.
    pub why: String,
    /// Set if the failure does not occur in every run.
    #[serde(default)]
    pub sometimes: bool,
}

fn names(list: &[String], name: &str) -> bool {
    list.iter().any(|one| one == "*" || one == name)
}

impl Limit {
    /// Returns whether the limit covers a cell.
    #[must_use]
    pub fn covers(&self, cell: &Cell) -> bool {
        names(&self.servers, &cell.server)
            && names(&self.clients, &cell.client)
            && names(&self.cases, &cell.case)
    }

    fn explains(&self, cell: &Cell) -> bool {
        self.covers(cell) && names(&self.rules, &cell.rule)
    }
}

/// Reads a list of limits.
///
/// # Errors
///
/// When the file cannot be read.
pub fn read(list: &Path) -> io::Result<Vec<Limit>> {
    Ok(serde_json::from_reader(File::open(list)?)?)
}

/// Marks failures that a limit explains, and returns the limits that no longer occur.
///
/// A limit must occur in each of its cells that ran, unless it is marked `sometimes`. Cells of such a limit count as limited
/// even if they passed, so that the page is the same for each run.
pub fn apply(limits: &[Limit], cells: &mut [Cell]) -> Vec<String> {
    let mut stale = Vec::new();
    for limit in limits {
        for cell in cells.iter_mut().filter(|cell| limit.covers(cell)) {
            let is_sporadic = limit.sometimes && cell.verdict == "pass";
            if cell.verdict == "fail" && limit.explains(cell) || is_sporadic {
                "limit".clone_into(&mut cell.verdict);
                cell.limit.clone_from(&limit.why);
            } else if cell.verdict == "pass" {
                stale.push(format!("{cell} passes, although limits.json says: {}", limit.why));
            }
        }
    }
    stale
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(case: &str, verdict: &str, rule: &str) -> Cell {
        Cell {
            server: "a".into(),
            client: "b".into(),
            case: case.into(),
            verdict: verdict.into(),
            rule: rule.into(),
            ..Cell::default()
        }
    }

    fn limit(sometimes: bool) -> Limit {
        let list = |name: &str| vec![name.to_owned()];
        Limit {
            servers: list("a"),
            clients: list("*"),
            cases: list("loss"),
            rules: list("order"),
            why: "it does not sort".into(),
            sometimes,
        }
    }

    #[test]
    fn a_limit_explains_only_its_own_failure() {
        let mut cells =
            [cell("loss", "fail", "order"), cell("loss", "fail", "acked"), cell("split", "fail", "order")];
        assert_eq!(apply(&[limit(false)], &mut cells), [""; 0]);
        assert_eq!(cells.each_ref().map(|cell| &cell.verdict[..]), ["limit", "fail", "fail"]);
        assert_eq!(cells[0].limit, "it does not sort");
    }

    #[test]
    fn a_limit_that_no_longer_occurs_is_reported() {
        let mut cells = [cell("loss", "pass", "")];
        assert_eq!(apply(&[limit(false)], &mut cells).len(), 1);
        assert_eq!(cells[0].verdict, "pass");
        assert_eq!(apply(&[limit(true)], &mut cells).len(), 0);
        assert_eq!(cells[0].verdict, "limit");
    }
}
