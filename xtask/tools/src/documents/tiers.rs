//! The table of the stages in a document, which is what xtask prints of them.

use anyhow::{Context, Result, bail};

pub(super) const DOCUMENT: &str = "CONTRIBUTING.md";
const BEGIN: &str = "<!-- cargo xtask ci --table -->\n";
const END: &str = "\n<!-- end -->";

/// Compares the table in the text of the document with the one that should be there.
pub(super) fn check(text: &str, expected: &str) -> Result<()> {
    let inner = text.split_once(BEGIN).and_then(|(_, rest)| rest.split_once(END));
    let (found, _) = inner.with_context(|| format!("{DOCUMENT} has no line {:?}", BEGIN.trim()))?;
    if found == expected {
        return Ok(());
    }
    let differs = found.lines().zip(expected.lines()).find(|(found, expected)| found != expected);
    let line = differs.map_or_else(
        || "one of them is longer".to_owned(),
        |(found, expected)| format!("first here:\n  {found}\n  {expected}"),
    );
    bail!(
        "the table of the stages in {DOCUMENT} is not that of `cargo xtask ci --table`, {line}\n\
         Replace what is between the lines {:?} and {:?} by what that command prints",
        BEGIN.trim(),
        END.trim()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_that_differs_is_an_error_that_says_how_to_make_it_anew() {
        let document = |table: &str| format!("# A\n\n{BEGIN}{table}{END}\nB\n");
        check(&document("| a |\n| b |"), "| a |\n| b |").unwrap();
        let error = check(&document("| a |\n| b |"), "| a |\n| c |").unwrap_err().to_string();
        assert!(error.contains("  | b |\n  | c |") && error.contains("cargo xtask ci --table"), "{error}");
        assert!(check(&document("| a |"), "| a |\n| b |").unwrap_err().to_string().contains("longer"));
        assert!(check("# A\n", "").unwrap_err().to_string().contains("has no line"));
    }
}
