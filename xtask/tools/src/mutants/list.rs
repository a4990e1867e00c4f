//! The list of mutants.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

/// A fault to put into a copy of the core.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Mutant {
    pub(crate) name: String,
    pub(crate) breaks: String,
    pub(crate) file: String,
    /// The text right before `from`, where that alone occurs more than once.
    #[serde(default)]
    pub(crate) after: String,
    pub(crate) from: String,
    pub(crate) to: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    mutant: Vec<Mutant>,
}

/// Reads the list. The number of a mutant is its place in it, from 1.
pub(crate) fn parse(text: &str) -> Result<Vec<Mutant>> {
    let List { mutant: mutants } = toml::from_str(text).context("it is no list of mutants")?;
    let mut names = BTreeSet::new();
    for mutant in &mutants {
        if !names.insert(&mutant.name) {
            bail!("two mutants are called \"{}\"", mutant.name);
        }
        for (field, text) in [
            ("name", &mutant.name),
            ("breaks", &mutant.breaks),
            ("file", &mutant.file),
            ("from", &mutant.from),
        ] {
            if text.trim().is_empty() {
                bail!("the mutant \"{}\" has no text in `{field}`", mutant.name);
            }
        }
    }
    Ok(mutants)
}

impl Mutant {
    /// Whether the text is a statement, which may be left out, and not an expression.
    pub(crate) fn is_statement(&self) -> bool {
        self.from.trim_end().ends_with(';')
    }

    /// What the copy has in place of `original`: the fault while mutant `number` is on, else what was there.
    pub(crate) fn switched(&self, number: usize, original: &str) -> String {
        let choice =
            format!("if crate::mutants::is_on({number}) {{ {} }} else {{ {original} }}", self.to.trim_end());
        if self.is_statement() { choice } else { format!("({choice})") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = r#"
[[mutant]]
name = "first"
breaks = "Something."
file = "a.rs"
from = "x > 1"
to = "true"

[[mutant]]
name = "second"
breaks = "Something else."
file = "a.rs"
from = "count += 1;"
to = ""
"#;

    #[test]
    fn an_expression_keeps_its_place_and_a_statement_may_vanish() {
        let mutants = parse(TWO).unwrap();
        assert_eq!(mutants[0].switched(1, "x > 1"), "(if crate::mutants::is_on(1) { true } else { x > 1 })");
        assert_eq!(
            mutants[1].switched(2, "count += 1;"),
            "if crate::mutants::is_on(2) {  } else { count += 1; }"
        );
    }

    #[test]
    fn a_list_that_says_too_little_or_the_same_twice_is_an_error() {
        let error = parse(&TWO.replace("second", "first")).unwrap_err();
        assert_eq!(error.to_string(), "two mutants are called \"first\"");
        let error = parse(&TWO.replace("count += 1;", " ")).unwrap_err();
        assert_eq!(error.to_string(), "the mutant \"second\" has no text in `from`");
        assert!(parse(&TWO.replace("file", "files")).is_err());
    }
}
