//! Writes a Markdown page from the JSON documents of several runs, with tables of peers by groups of cases.

use crate::cases;
use crate::report::Peer;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The outcome of a case in one run.
#[derive(Clone, Debug, Deserialize)]
struct Judged {
    number: u16,
    requirement: String,
    outcome: String,
    #[serde(default)]
    reason: String,
}

/// The JSON document of a run.
#[derive(Clone, Debug, Deserialize)]
pub struct Run {
    role: String,
    command: String,
    peer: Peer,
    cases: Vec<Judged>,
}

impl Run {
    /// Parses a document that `--json` printed.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not a JSON document of a run.
    pub fn read(text: &str) -> serde_json::Result<Self> {
        serde_json::from_str(text)
    }

    fn of_group(&self, group: u16) -> [usize; 4] {
        let mut counts = [0; 4];
        for judged in self.cases.iter().filter(|judged| judged.number / 100 == group) {
            let at =
                ["passed", "failed", "deviates", "skipped"].iter().position(|word| *word == judged.outcome);
            counts[at.unwrap_or(1)] += 1;
        }
        counts
    }

    fn totals(&self) -> [usize; 4] {
        let mut groups: Vec<_> = self.cases.iter().map(|judged| judged.number / 100).collect();
        groups.dedup();
        groups.into_iter().fold([0; 4], |mut sum, group| {
            sum.iter_mut().zip(self.of_group(group)).for_each(|(sum, count)| *sum += count);
            sum
        })
    }
}

const ROLES: [(&str, &str); 4] = [
    ("server", "Servers"),
    ("client", "Clients"),
    ("game-server", "Servers of the Game Protocol"),
    ("secure-server", "Servers with secure connections"),
];

/// Returns the page: the given head, a table for each role, the peers, and the cases that any peer fails.
#[must_use]
pub fn markdown(head: &str, runs: &[Run]) -> String {
    let mut out = head.trim_end().to_owned();
    out.push('\n');
    for (role, title) in ROLES {
        let of_role: Vec<&Run> = runs.iter().filter(|run| run.role == role).collect();
        if of_role.is_empty() {
            continue;
        }
        let _ = write!(out, "\n## {title}\n\n");
        table(&of_role, &mut out);
        let _ = write!(out, "\n### {title}: versions and commands\n\n");
        of_role.iter().for_each(|run| about(run, &mut out));
        failures(&of_role, &format!("{title}: failed MUST cases"), "failed", &mut out);
        failures(&of_role, &format!("{title}: failed SHOULD cases"), "deviates", &mut out);
    }
    out
}

fn cell([passed, failed, deviates, skipped]: [usize; 4]) -> String {
    let mut words = vec![passed.to_string()];
    for (count, letter) in [(failed, 'f'), (deviates, 'd'), (skipped, 's')] {
        if count > 0 {
            words.push(format!("{count}{letter}"));
        }
    }
    words.join(" ")
}

/// Appends a table with a row for each group and a column for each peer.
fn table(runs: &[&Run], out: &mut String) {
    let names: Vec<_> = runs.iter().map(|run| run.peer.name.replace('|', "/")).collect();
    let _ = writeln!(out, "| group | {} |\n|---{}|", names.join(" | "), "|---".repeat(runs.len()));
    let mut groups: Vec<u16> =
        runs.iter().flat_map(|run| &run.cases).map(|judged| judged.number / 100).collect();
    groups.sort_unstable();
    groups.dedup();
    for group in groups {
        let cells: Vec<_> = runs.iter().map(|run| cell(run.of_group(group))).collect();
        let _ = writeln!(out, "| {} | {} |", cases::group(group * 100), cells.join(" | "));
    }
    let totals: Vec<_> = runs.iter().map(|run| cell(run.totals())).collect();
    let _ = writeln!(out, "| **all** | {} |", totals.join(" | "));
}

fn about(run: &Run, out: &mut String) {
    let Peer { name, version, start, note } = &run.peer;
    let _ = write!(out, "- **{name}**");
    if !version.is_empty() {
        let _ = write!(out, ", {version}");
    }
    out.push('.');
    if !run.command.contains(start.as_str()) {
        let _ = write!(out, " Started by `{start}`.");
    }
    let _ = write!(out, " Tested with `{}`.", run.command);
    if !note.is_empty() {
        let _ = write!(out, " {note}");
    }
    out.push('\n');
}

/// The maximum number of rows below a heading, to keep the page readable.
const ROWS: usize = 50;

/// Appends a heading, and a row for each case with this outcome in any run. The row has the reason from the first such
/// run.
fn failures(runs: &[&Run], title: &str, outcome: &str, out: &mut String) {
    let mut rows: BTreeMap<u16, (&Judged, Vec<&str>)> = BTreeMap::new();
    for run in runs {
        for judged in run.cases.iter().filter(|judged| judged.outcome == outcome) {
            rows.entry(judged.number).or_insert((judged, Vec::new())).1.push(&run.peer.name);
        }
    }
    if rows.is_empty() {
        let _ = write!(out, "\n### {title}\n\nNone.\n");
    }
    let rows: Vec<_> = rows.into_iter().collect();
    for part in rows.chunks(ROWS) {
        let (Some((first, _)), Some((last, _))) = (part.first(), part.last()) else { continue };
        let cases = if rows.len() > ROWS { format!(", cases {first} to {last}") } else { String::new() };
        let _ = write!(out, "\n### {title}{cases}\n\n");
        out.push_str(
            "| case | requirement | peers that fail | observation for the first peer |\n|---|---|---|---|\n",
        );
        for (number, (judged, peers)) in part {
            let (requirement, reason) =
                (judged.requirement.replace('|', "/"), judged.reason.replace('|', "/"));
            let _ = writeln!(out, "| {number} | {requirement} | {} | {reason} |", peers.join(", "));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(name: &str, outcome: &str) -> Run {
        let text = format!(
            r#"{{"role": "server", "command": "rakwire-conformance A", "target": "A", "strict": false,
            "peer": {{"name": "{name}", "version": "1", "start": "serve", "note": ""}},
            "cases": [
              {{"number": 101, "name": "a", "level": "MUST", "requirement": "It answers.", "outcome": "passed"}},
              {{"number": 102, "name": "b", "level": "MUST", "requirement": "It is right.", "outcome": "{outcome}",
                "reason": "it is wrong"}}]}}"#
        );
        Run::read(&text).unwrap()
    }

    #[test]
    fn the_markdown_page_counts_outcomes_by_group_and_lists_failures() {
        let page = markdown("# Page", &[run("one", "failed"), run("two", "skipped")]);
        assert!(page.contains("| group | one | two |"), "{page}");
        assert!(page.contains("| offline messages | 1 1f | 1 1s |"), "{page}");
        assert!(page.contains("| 102 | It is right. | one | it is wrong |"), "{page}");
        assert!(page.contains("Started by `serve`. Tested with `rakwire-conformance A`."), "{page}");
    }
}
