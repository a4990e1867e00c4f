//! Whether the documents have the instruction counts of `bench/instructions.json`.
//!
//! A count in a sentence stands right before what it is: 2,029, `messages_100b` of `bench/instructions.json`. A table with the
//! columns "plain" and "secure" names its counts in the first cell of each row: `messages_100b` is that and
//! `secure_messages_100b`.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::measurements::grouped;

pub(super) const FILE: &str = "bench/instructions.json";
/// How a sentence names the file.
const REFERENCE: &str = "`bench/instructions.json`";
/// The head of a table that compares plain and secure connections.
const HEAD: [&str; 3] = ["plain", "secure", "plain / secure"];

/// The committed counts.
#[derive(Deserialize)]
pub(super) struct Counts {
    instructions: BTreeMap<String, u64>,
}

/// Where a document has a count.
#[derive(Debug, PartialEq, Eq)]
struct Claim {
    line: usize,
    name: String,
    /// The number, or the cells of a row behind its first one.
    numbers: Vec<String>,
    is_row: bool,
}

impl Counts {
    pub(super) fn parse(text: &str) -> Result<Self> {
        serde_json::from_str(text).with_context(|| format!("{FILE} has no counts"))
    }

    /// Where a document has other numbers than the file, by lines, and how many places have some.
    pub(super) fn problems(&self, text: &str) -> (usize, Vec<(usize, String)>) {
        let claims: Vec<_> = rows(text).into_iter().chain(sentences(text)).collect();
        let problems = claims.iter().filter_map(|claim| Some((claim.line, self.problem(claim)?)));
        (claims.len(), problems.collect())
    }

    fn problem(&self, claim: &Claim) -> Option<String> {
        let Claim { name, numbers, .. } = claim;
        match self.expected(claim) {
            None => Some(format!("{FILE} has no {name:?}")),
            Some(expected) if expected != *numbers => {
                Some(format!("{name} is {}, not {}", expected.join(", "), numbers.join(", ")))
            }
            Some(_) => None,
        }
    }

    fn expected(&self, claim: &Claim) -> Option<Vec<String>> {
        let plain = *self.instructions.get(&claim.name)?;
        if !claim.is_row {
            return Some(vec![grouped(plain)]);
        }
        let secure = *self.instructions.get(&format!("secure_{}", claim.name))?;
        let percent = (100.0 * plain as f64 / secure.max(1) as f64).round();
        Some(vec![grouped(plain), grouped(secure), format!("{percent} %")])
    }
}

/// The counts that stand in sentences, wherever their lines end.
fn sentences(text: &str) -> Vec<Claim> {
    let claim = |(at, _)| {
        let before = text.get(..at)?.trim_end().strip_suffix("of")?.trim_end().strip_suffix('`')?;
        let (before, name) = before.rsplit_once('`')?;
        let number = before.trim_end().strip_suffix(',')?;
        let start = number.rfind(|c: char| !c.is_ascii_digit() && c != ',').map_or(0, |at| at + 1);
        let number = number.get(start..).filter(|number| !number.is_empty())?;
        let line = 1 + before.matches('\n').count();
        Some(Claim { line, name: name.to_owned(), numbers: vec![number.to_owned()], is_row: false })
    };
    text.match_indices(REFERENCE).filter_map(claim).collect()
}

/// The rows of the tables that compare plain and secure connections.
fn rows(text: &str) -> Vec<Claim> {
    let mut rows = Vec::new();
    let mut is_table = false;
    for (number, line) in (1..).zip(text.lines()) {
        let mut cells = line.trim().trim_matches('|').split('|').map(str::trim);
        let first = cells.next().unwrap_or_default();
        let numbers: Vec<_> = cells.map(str::to_owned).collect();
        if numbers == HEAD {
            is_table = true;
        } else if !line.starts_with('|') {
            is_table = false;
        } else if is_table && !line.starts_with("|---") {
            let name = first.split('`').nth(1).unwrap_or_default().to_owned();
            rows.push(Claim { line: number, name, numbers, is_row: true });
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts() -> Counts {
        Counts::parse(r#"{"rustc": "x", "instructions": {"a": 1200, "b": 7, "secure_a": 4321}}"#).unwrap()
    }

    fn problems(text: &str) -> (usize, Vec<(usize, String)>) {
        counts().problems(text)
    }

    #[test]
    fn counts_in_sentences_are_those_of_the_file() {
        let text =
            "It takes 1,200, `a` of `bench/instructions.json`, and 8,\n`b` of\n`bench/instructions.json`.";
        assert_eq!(problems(text), (2, vec![(2, "b is 7, not 8".to_owned())]));
        let unknown = "9, `c` of `bench/instructions.json`";
        assert_eq!(problems(unknown), (1, vec![(1, format!("{FILE} has no \"c\""))]));
        assert_eq!(problems("which is `a` of `bench/instructions.json`"), (0, Vec::new()));
    }

    #[test]
    fn rows_of_plain_and_secure_connections_are_those_of_the_file() {
        let head = "| for each | plain | secure | plain / secure |\n|---|---|---|---|\n";
        let row = |row: &str| problems(&format!("{head}{row}\n\n| b | 1 |"));
        assert_eq!(row("| one (`a`) | 1,200 | 4,321 | 28 % |"), (1, Vec::new()));
        let wrong = (3, "a is 1,200, 4,321, 28 %, not 1,201, 4,321, 28 %".to_owned());
        assert_eq!(row("| one (`a`) | 1,201 | 4,321 | 28 % |"), (1, vec![wrong]));
        assert_eq!(row("| one (`b`) | 7 | 7 | 100 % |").1, [(3, format!("{FILE} has no \"b\""))]);
        assert_eq!(row("| one | 1,200 | 4,321 | 28 % |").1, [(3, format!("{FILE} has no \"\""))]);
        assert_eq!(
            problems("| rate | plain | secure | secure / plain |\n|---|---|---|---|\n| x | 1 | 2 | 3 |"),
            (0, Vec::new())
        );
    }
}
