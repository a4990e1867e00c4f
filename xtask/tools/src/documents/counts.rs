//! Checks instruction counts in documents against `bench/instructions.json`.
//!
//! In a sentence, a count precedes its name: 2,029, `messages_100b` of `bench/instructions.json`. A table row with a
//! name in brackets contains the plain count and the secure one.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::measurements::grouped;

pub(super) const FILE: &str = "bench/instructions.json";

/// The committed counts.
#[derive(Deserialize)]
pub(super) struct Counts {
    instructions: BTreeMap<String, u64>,
}

impl Counts {
    pub(super) fn parse(text: &str) -> Result<Self> {
        serde_json::from_str(text).with_context(|| format!("{FILE} has no counts"))
    }

    /// Returns the number of places with counts, and the wrong ones by line.
    pub(super) fn problems(&self, text: &str) -> (usize, Vec<(usize, String)>) {
        let mut count = 0;
        let mut problems = Vec::new();
        let mut compare = |line: usize, name: &str, found: &str| {
            count += 1;
            let expected =
                self.instructions.get(name).map_or_else(|| "missing".to_owned(), |count| grouped(*count));
            if expected != found {
                problems.push((line, format!("{name} of {FILE} is {expected}, not {found}")));
            }
        };
        for (line, row) in (1..).zip(text.lines()).filter(|(_, row)| row.ends_with("% |")) {
            let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
            if let ([first, plain, secure, _], Some(name)) = (&cells[..], row.split("(`").nth(1)) {
                let name = name.split('`').next().filter(|_| first.ends_with("`)")).unwrap_or_default();
                compare(line, name, plain);
                compare(line, &format!("secure_{name}"), secure);
            }
        }
        let words: Vec<_> = text.split_whitespace().collect();
        for sentence in
            words.windows(4).filter(|words| words[2] == "of" && words[3].starts_with(&format!("`{FILE}`")))
        {
            let number = sentence[0].strip_suffix(',').unwrap_or_default();
            if number.starts_with(|first: char| first.is_ascii_digit()) {
                compare(line_of(text, sentence[1]), sentence[1].trim_matches('`'), number);
            }
        }
        (count, problems)
    }
}

fn line_of(text: &str, word: &str) -> usize {
    text.find(word).map_or(1, |at| 1 + text[..at].matches('\n').count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_must_match_the_file() {
        let counts =
            Counts::parse(r#"{"rustc": "x", "instructions": {"a": 1200, "b": 7, "secure_a": 4321}}"#)
                .unwrap();
        let text = "It takes 1,200, `a` of `bench/instructions.json`, and 8,\n`b` of\n`bench/instructions.json`.\n\n\
                    | one (`a`) | 1,200 | 4,322 | 28 % |\n| no name | 1 | 2 | 50 % |\nwhich is `a` of `bench/instructions.json`";
        let expected =
            [(5, format!("secure_a of {FILE} is 4,321, not 4,322")), (2, format!("b of {FILE} is 7, not 8"))];
        assert_eq!(counts.problems(text), (4, expected.to_vec()));
    }
}
