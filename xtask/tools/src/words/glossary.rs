//! The tables of docs/glossary.md.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};

use super::pattern::{Candidate, Pattern};
use super::text::Kind;

/// A row of the table of words that must not occur.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) line: usize,
    /// The patterns, and each as the glossary writes it.
    pub(super) patterns: Vec<Pattern>,
    /// What to write instead.
    pub(super) instead: String,
    /// The beginnings of the paths where that holds; everywhere if there is none.
    places: Vec<String>,
}

/// A word that stays although a pattern fits it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Kept {
    line: usize,
    word: String,
    places: Vec<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Glossary {
    pub(super) rules: Vec<Rule>,
    kept: Vec<Kept>,
}

const RULES: [&str; 3] = ["not this", "but this", "where"];
const KEPT: [&str; 3] = ["kept", "where", "why"];

impl Glossary {
    pub(super) fn parse(text: &str) -> Result<Self> {
        let (mut rules, mut kept) = (Vec::new(), Vec::new());
        let mut head: Vec<&str> = Vec::new();
        for (line, row) in (1..).zip(text.lines()) {
            if !row.starts_with('|') {
                head.clear();
                continue;
            }
            let cells: Vec<_> = row.trim().trim_matches('|').split('|').map(str::trim).collect();
            if head.is_empty() {
                head = cells;
            } else if !row.starts_with("|---") {
                let [first, second, third] = cells[..] else { bail!("line {line} has not three cells") };
                let read = || format!("line {line} cannot be read");
                if head == RULES {
                    let patterns = Pattern::of_cell(first).with_context(read)?;
                    let instead = second.to_owned();
                    rules.push(Rule { line, patterns, instead, places: in_backticks(third) });
                } else if head == KEPT {
                    if third.is_empty() {
                        bail!("line {line} keeps {first} without a reason");
                    }
                    let places = in_backticks(second);
                    let words = in_backticks(first).into_iter();
                    kept.extend(words.map(|word| Kept { line, word, places: places.clone() }));
                }
            }
        }
        if rules.is_empty() {
            bail!("there is no table with the columns {}", RULES.join(", "));
        }
        Ok(Self { rules, kept })
    }

    /// Whether a word of a file is one of those that stay.
    pub(super) fn keeps(&self, path: &str, word: &str) -> bool {
        self.kept.iter().any(|kept| kept.word == word && is_at(&kept.places, path))
    }

    /// The entries of the second table that keep nothing: no file has such a word, or no pattern fits it.
    pub(super) fn unused(&self, words: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
        let is_used = |kept: &Kept| {
            let candidate = Candidate::new(&kept.word, Kind::Code);
            let rules = || {
                self.rules.iter().filter(|rule| rule.patterns.iter().any(|pattern| pattern.fits(&candidate)))
            };
            let keeps = |path: &String| is_at(&kept.places, path) && rules().any(|rule| rule.is_for(path));
            words.get(&kept.word).is_some_and(|paths| paths.iter().any(keeps))
        };
        let unused = self.kept.iter().filter(|kept| !is_used(kept));
        unused.map(|kept| format!("line {} keeps {}, which is nowhere", kept.line, kept.word)).collect()
    }
}

impl Rule {
    pub(super) fn is_for(&self, path: &str) -> bool {
        is_at(&self.places, path)
    }
}

fn is_at(places: &[String], path: &str) -> bool {
    places.is_empty() || places.iter().any(|place| path.starts_with(place))
}

fn in_backticks(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}
