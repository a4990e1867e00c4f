//! The known limits of peers, which explain expected failures.

use crate::cases;
use crate::finding::By;
use crate::peers::{Peer, Role};
use crate::report::Cell;
use crate::rules;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io;
use std::path::Path;

/// An expected failure.
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
    /// The side that fails. Default: both sides.
    #[serde(default)]
    pub end: By,
    /// The reason, as a sentence about the peer.
    pub why: String,
    /// True if the failure occurs only in some runs.
    #[serde(default)]
    pub sometimes: bool,
}

fn names(list: &[String], name: &str) -> bool {
    list.iter().any(|one| one == "*" || one == name)
}

impl Limit {
    /// Returns true if the limit applies to a cell.
    #[must_use]
    pub fn covers(&self, cell: &Cell) -> bool {
        names(&self.servers, &cell.server)
            && names(&self.clients, &cell.client)
            && names(&self.cases, &cell.case)
    }

    fn explains(&self, cell: &Cell) -> bool {
        // If the capture does not show which side failed, a limit of either side explains it.
        let is_of_its_end = self.end == By::Both || cell.by == By::Both || self.end == cell.by;
        self.covers(cell) && names(&self.rules, &cell.rule) && is_of_its_end
    }

    /// Returns a name in this limit that is not a peer, case or rule; `None` if all exist.
    fn unknown(&self, peers: &[Peer]) -> Option<String> {
        let playing = |role: Role| -> Vec<&str> {
            peers.iter().filter(|peer| peer.plays(role)).map(|peer| &peer.name[..]).collect()
        };
        let lists = [
            ("server", &self.servers, playing(Role::Server)),
            ("client", &self.clients, playing(Role::Client)),
            ("case", &self.cases, cases::ALL.iter().map(|case| case.name).collect()),
            ("rule", &self.rules, rules::ALL.iter().map(|rule| rule.name).collect()),
        ];
        lists.into_iter().find_map(|(kind, list, known)| {
            let name = list.iter().find(|name| *name != "*" && !known.contains(&&name[..]))?;
            Some(format!("there is no {kind} {name}"))
        })
    }
}

/// Reads a list of limits.
///
/// # Errors
///
/// Returns an error if the file cannot be read, or names a peer, case or rule that does not exist; such a
/// limit would have no effect.
pub fn read(list: &Path, peers: &[Peer]) -> io::Result<Vec<Limit>> {
    let limits: Vec<Limit> = serde_json::from_reader(io::BufReader::new(File::open(list)?))?;
    for (index, limit) in limits.iter().enumerate() {
        if let Some(why) = limit.unknown(peers) {
            return Err(io::Error::other(format!(
                "limit {} ({}): {why}; see --list, and give --limits with --peers",
                index + 1,
                limit.why
            )));
        }
    }
    Ok(limits)
}

/// Describes the limits that apply to no cell that ran. Returns an empty list unless the whole matrix ran.
#[must_use]
pub fn unused(limits: &[Limit], cells: &[Cell], peers: &[Peer]) -> Vec<String> {
    let count = |role| peers.iter().filter(|peer| peer.plays(role)).count();
    if cells.len() < count(Role::Server) * count(Role::Client) * cases::ALL.len() {
        return Vec::new();
    }
    let ran = |cell: &&Cell| ["pass", "limit", "fail"].contains(&&cell.verdict[..]);
    let is_unused = |limit: &&Limit| !cells.iter().filter(ran).any(|cell| limit.covers(cell));
    let line = |limit: &Limit| {
        let lists = [&limit.servers, &limit.clients, &limit.cases].map(|names| names.join(", "));
        format!("no cell matches the limit of {}: {}", lists.join("; "), limit.why)
    };
    limits.iter().filter(is_unused).map(line).collect()
}

/// Marks the failures that a limit explains. Returns the limits with failures that no longer occur.
///
/// The failure of a limit must occur in each of its cells that ran, unless the limit is marked `sometimes`.
/// Cells of a `sometimes` limit count as limited even if they passed, so that every run produces the same
/// results page.
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
    use crate::peers;

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
            end: By::Both,
            why: "it does not sort".into(),
            sometimes,
        }
    }

    #[test]
    fn a_limit_explains_only_failures_of_its_peers_case_and_rule() {
        let mut cells =
            [cell("loss", "fail", "order"), cell("loss", "fail", "acked"), cell("split", "fail", "order")];
        assert_eq!(apply(&[limit(false)], &mut cells), [""; 0]);
        assert_eq!(cells.each_ref().map(|cell| &cell.verdict[..]), ["limit", "fail", "fail"]);
        assert_eq!(cells[0].limit, "it does not sort");
    }

    #[test]
    fn a_limit_of_one_side_does_not_explain_failures_of_the_other_side() {
        let limit = Limit { end: By::Server, ..limit(true) };
        let by = |by| Cell { by, ..cell("loss", "fail", "order") };
        let mut cells = [by(By::Server), by(By::Client), by(By::Both)];
        assert_eq!(apply(&[limit], &mut cells), [""; 0]);
        assert_eq!(cells.each_ref().map(|cell| &cell.verdict[..]), ["limit", "fail", "limit"]);
    }

    fn peers() -> Vec<Peer> {
        peers::read(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/peers.json"))).unwrap()
    }

    #[test]
    fn the_limits_name_peers_cases_and_rules_that_exist() {
        let limits = read(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/limits.json")), &peers()).unwrap();
        assert!(!limits.is_empty());
    }

    #[test]
    fn limits_with_unknown_names_are_refused() {
        let file = std::env::temp_dir().join(format!("rakwire-limits-{}.json", std::process::id()));
        let known = Limit { servers: vec!["cpp".into()], ..limit(false) };
        let list = |name: &str| vec![name.to_owned()];
        for (limit, name) in [
            (Limit { servers: list("pybedrock-net"), ..known.clone() }, "server pybedrock-net"),
            (Limit { clients: list("cp"), ..known.clone() }, "client cp"),
            (Limit { cases: list("los"), ..known.clone() }, "case los"),
            (Limit { rules: list("ordr"), ..known.clone() }, "rule ordr"),
        ] {
            std::fs::write(&file, serde_json::to_string(&[&known, &limit]).unwrap()).unwrap();
            let error = read(&file, &peers()).unwrap_err().to_string();
            assert!(error.contains("limit 2") && error.contains(name), "{error}");
        }
        std::fs::remove_file(&file).unwrap();
    }

    #[test]
    fn a_limit_without_a_cell_in_the_matrix_is_listed_as_unused() {
        let peers = peers();
        let mut cells = Vec::new();
        for server in peers.iter().filter(|peer| peer.plays(Role::Server)) {
            for client in peers.iter().filter(|peer| peer.plays(Role::Client)) {
                let names = |case: &cases::Case| Cell {
                    server: server.name.clone(),
                    client: client.name.clone(),
                    ..cell(case.name, if client.name == "jsp-raknet" { "unsupported" } else { "pass" }, "")
                };
                cells.extend(cases::ALL.iter().map(names));
            }
        }
        let clients =
            |name: &str| Limit { servers: vec!["*".into()], clients: vec![name.into()], ..limit(false) };
        let limits = [clients("jsp-raknet"), clients("cpp")];
        let lines = unused(&limits, &cells, &peers);
        assert!(lines.len() == 1 && lines[0].contains("jsp-raknet"), "{lines:?}");
        assert_eq!(unused(&limits, &cells[1..], &peers), [""; 0]);
    }

    #[test]
    fn a_permanent_limit_that_was_not_observed_is_reported() {
        let mut cells = [cell("loss", "pass", "")];
        assert_eq!(apply(&[limit(false)], &mut cells).len(), 1);
        assert_eq!(cells[0].verdict, "pass");
        assert_eq!(apply(&[limit(true)], &mut cells).len(), 0);
        assert_eq!(cells[0].verdict, "limit");
    }
}
