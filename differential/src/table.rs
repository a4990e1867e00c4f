//! The table of documented differences, `differences.txt`.

use std::fmt;
use std::path::Path;

use crate::compare::Difference;
use crate::pairing::{Library, Pairing};

/// A row of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The line in its file, from 1 on.
    pub line: usize,
    script: String,
    peer: PeerPattern,
    stream: String,
    reference: String,
    other: String,
    /// The page and the heading that documents the difference.
    pub page: String,
}

/// The peers that a row applies to.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PeerPattern {
    name: String,
    /// The library of that peer, if it matters.
    library: Option<Library>,
}

/// The error of a malformed table.
#[derive(Debug, PartialEq, Eq)]
pub struct TableError {
    /// The line, from 1 on.
    pub line: usize,
    /// The mistake.
    pub mistake: String,
}

impl fmt::Display for TableError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "differences.txt, line {}: {}", self.line, self.mistake)
    }
}

impl std::error::Error for TableError {}

/// Parses a table of six columns, separated by `|`.
pub fn parse(text: &str) -> Result<Vec<Row>, TableError> {
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    lines.map(|(number, line)| row(number, line)).collect()
}

fn row(line: usize, text: &str) -> Result<Row, TableError> {
    let columns: Vec<&str> = text.split('|').map(str::trim).collect();
    let error = |mistake: &str| TableError { line, mistake: mistake.to_owned() };
    let [script, peer, stream, reference, other, page] = columns[..] else {
        return Err(error("needs six columns: script | peer | stream | original | now | page"));
    };
    let mut words = peer.split_whitespace();
    let name = words.next().ok_or_else(|| error("the second column is a peer, or *"))?.to_owned();
    let library = match words.next() {
        None => None,
        Some("rakwire") => Some(Library::Rakwire),
        Some("original") => Some(Library::Original),
        Some(_) => return Err(error("behind the peer stands nothing, `rakwire` or `original`")),
    };
    if !page.contains('#') {
        return Err(error("the last column is a page with a heading, such as docs/differential.md#closing"));
    }
    Ok(Row {
        line,
        script: script.to_owned(),
        peer: PeerPattern { name, library },
        stream: stream.to_owned(),
        reference: reference.to_owned(),
        other: other.to_owned(),
        page: page.to_owned(),
    })
}

impl Row {
    /// Returns true if this row matches a difference of a pairing. `peer` is the index of its peer.
    #[must_use]
    pub fn permits(&self, difference: &Difference, pairing: Pairing, peer: usize) -> bool {
        matches(&self.script, &difference.script)
            && matches(&self.peer.name, &difference.peer)
            && self.peer.library.is_none_or(|library| library == pairing.library(peer))
            && matches(&self.stream, &difference.stream)
            && matches(&self.reference, &difference.reference)
            && matches(&self.other, &difference.other)
    }

    /// Checks that the page of the row has its heading. `root` is the folder of the repository.
    fn check_page(&self, root: &Path) -> Result<(), TableError> {
        let error = |mistake| TableError { line: self.line, mistake };
        let (page, anchor) = self.page.split_once('#').unwrap_or((&self.page, ""));
        let text = std::fs::read_to_string(root.join(page))
            .map_err(|failure| error(format!("{page} cannot be read: {failure}")))?;
        let mut headings = text.lines().filter(|line| line.starts_with('#')).map(slug);
        if headings.any(|heading| heading == anchor) {
            Ok(())
        } else {
            Err(error(format!("{page} has no heading {anchor:?}")))
        }
    }
}

/// Checks that each row cites a heading of a document in the repository.
pub fn check_pages(rows: &[Row]) -> Result<(), TableError> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    rows.iter().try_for_each(|row| row.check_page(&root))
}

/// Returns the anchor of a heading.
fn slug(line: &str) -> String {
    let kept = line.trim_start_matches('#').trim().chars();
    let kept = kept.filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

/// Matches a text with a pattern in which `*` is any text.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn difference(other: &str) -> Difference {
        let text = str::to_owned;
        Difference {
            script: text("close-silent"),
            peer: text("b"),
            stream: text("connection with a"),
            reference: text("accepted, lost"),
            other: text(other),
        }
    }

    const ROW: &str =
        "close-* | b rakwire | connection with * | *lost | * disconnected | docs/differential.md#closing";

    #[test]
    fn a_row_permits_the_differences_that_match_all_of_its_columns() {
        let rows = parse(ROW).expect("a table");
        let ours = Pairing { first: Library::Original, others: Library::Rakwire };
        assert!(rows[0].permits(&difference("accepted, disconnected"), ours, 1));
        assert!(!rows[0].permits(&difference("accepted"), ours, 1));
        assert!(
            !rows[0].permits(&difference("accepted, disconnected"), ours, 0),
            "the first peer is the original"
        );
        let other = Difference { script: "ping".to_owned(), ..difference("accepted, disconnected") };
        assert!(!rows[0].permits(&other, ours, 1));
    }

    #[test]
    fn an_incomplete_row_is_refused_with_its_line() {
        let error = parse("# a comment\n\none | two").expect_err("a row of two columns");
        assert_eq!(error.line, 3);
        assert!(parse(&ROW.replace("#closing", "")).is_err(), "a page without a heading");
        assert!(parse(&ROW.replace("b rakwire", "b other")).is_err(), "an unknown library");
    }

    #[test]
    fn asterisks_match_any_text() {
        for (pattern, text, is_match) in [
            ("*", "", true),
            ("a*c", "abc", true),
            ("a*c", "ab", false),
            ("a", "ab", false),
            ("*b*", "abc", true),
        ] {
            assert_eq!(matches(pattern, text), is_match, "{pattern} and {text}");
        }
    }
}
