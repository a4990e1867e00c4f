//! The table of documented differences, `differences.txt`.

use std::fmt;
use std::path::Path;

use crate::difference::Difference;
use crate::pairing::{Library, Pairing};
use crate::script::Script;

/// A row of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The line number in the file, from 1.
    pub line: usize,
    script: ScriptPattern,
    peer: PeerPattern,
    stream: String,
    reference: String,
    other: String,
    /// The document and heading that describe the difference, as `PATH#ANCHOR`.
    pub page: String,
}

/// The scripts to which a row applies.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ScriptPattern {
    name: String,
    /// True if the row applies only to scripts with a network that duplicates datagrams.
    doubles: bool,
}

/// The peers to which a row applies.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PeerPattern {
    name: String,
    /// The library of the peer, if the row applies only to one.
    library: Option<Library>,
}

/// The error of a malformed table.
#[derive(Debug, PartialEq, Eq)]
pub struct TableError {
    /// The line number, from 1.
    pub line: usize,
    /// A description of the mistake.
    pub mistake: String,
}

impl fmt::Display for TableError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "differences.txt, line {}: {}", self.line, self.mistake)
    }
}

impl std::error::Error for TableError {}

/// Parses a table with six columns separated by `|`.
pub fn parse(text: &str) -> Result<Vec<Row>, TableError> {
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    lines.map(|(number, line)| row(number, line)).collect()
}

fn row(line: usize, text: &str) -> Result<Row, TableError> {
    let columns: Vec<&str> = text.split('|').map(str::trim).collect();
    let error = |mistake: &str| TableError { line, mistake: mistake.to_owned() };
    let [script, peer, stream, reference, other, page] = columns[..] else {
        return Err(error("a row needs six columns: script | peer | stream | original | now | page"));
    };
    let script = match script.split_once(" over ") {
        None => ScriptPattern { name: script.to_owned(), doubles: false },
        Some((name, "doubled datagrams")) => ScriptPattern { name: name.to_owned(), doubles: true },
        Some(_) => return Err(error("only `over doubled datagrams` may follow the script")),
    };
    let mut words = peer.split_whitespace();
    let name = words.next().ok_or_else(|| error("the second column must be a peer or *"))?.to_owned();
    let library = match words.next() {
        None => None,
        Some("rakwire") => Some(Library::Rakwire),
        Some("original") => Some(Library::Original),
        Some(_) => return Err(error("only `rakwire` or `original` may follow the peer")),
    };
    if !page.contains('#') {
        return Err(error(
            "the last column must be a page with a heading, such as docs/differential.md#closing",
        ));
    }
    Ok(Row {
        line,
        script,
        peer: PeerPattern { name, library },
        stream: stream.to_owned(),
        reference: reference.to_owned(),
        other: other.to_owned(),
        page: page.to_owned(),
    })
}

impl Row {
    /// Returns true if the row permits this difference.
    #[must_use]
    pub fn permits(&self, difference: &Difference, script: &Script, pairing: Pairing) -> bool {
        let peer = script.peers.iter().position(|name| *name == difference.peer).unwrap_or(0);
        matches(&self.script.name, &difference.script)
            && (!self.script.doubles || script.doubles_datagrams())
            && matches(&self.peer.name, &difference.peer)
            && self.peer.library.is_none_or(|library| library == pairing.library(peer))
            && matches(&self.stream, &difference.stream)
            && matches(&self.reference, &difference.reference)
            && matches(&self.other, &difference.other)
    }

    /// Checks that the cited document contains the heading. `root` is the folder of the repository.
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

/// Returns the anchor of a Markdown heading.
fn slug(line: &str) -> String {
    let kept = line.trim_start_matches('#').trim().chars();
    let kept = kept.filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

/// Returns true if a text matches a pattern in which `*` is any text.
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

    fn script(name: &str, network: &str) -> Script {
        let text = format!("script {name}\n{network}\na start 8 8\nb start 1 0\n");
        crate::script::parse(&text).expect("a script").remove(0)
    }

    fn difference(script: &Script, other: &str) -> Difference {
        let text = str::to_owned;
        Difference {
            script: script.name.clone(),
            peer: text("b"),
            stream: text("connection with a"),
            reference: text("accepted, lost"),
            other: text(other),
        }
    }

    const ROW: &str =
        "close-* | b rakwire | connection with * | *lost | * disconnected | docs/differential.md#closing";
    const OURS: Pairing = Pairing { first: Library::Original, others: Library::Rakwire };

    #[test]
    fn a_row_permits_the_differences_that_match_all_of_its_columns() {
        let rows = parse(ROW).expect("a table");
        let close = script("close-silent", "");
        assert!(rows[0].permits(&difference(&close, "accepted, disconnected"), &close, OURS));
        assert!(!rows[0].permits(&difference(&close, "accepted"), &close, OURS));
        let other = Pairing { first: Library::Rakwire, others: Library::Original };
        assert!(
            !rows[0].permits(&difference(&close, "accepted, disconnected"), &close, other),
            "the row must apply only if b uses rakwire"
        );
        let ping = script("ping", "");
        assert!(!rows[0].permits(&difference(&ping, "accepted, disconnected"), &ping, OURS));
    }

    #[test]
    fn a_row_for_duplicated_datagrams_applies_only_to_scripts_with_duplication() {
        let rows = parse(&ROW.replace("close-*", "* over doubled datagrams")).expect("a table");
        for (network, is_permitted) in
            [("", false), ("network loss 0.1", false), ("network duplicate 0.1", true)]
        {
            let one = script("any", network);
            assert_eq!(
                rows[0].permits(&difference(&one, " disconnected"), &one, OURS),
                is_permitted,
                "{network}"
            );
        }
        assert!(parse(&ROW.replace("close-*", "* over the sea")).is_err());
    }

    #[test]
    fn an_incomplete_row_is_refused_with_its_line_number() {
        let error = parse("# a comment\n\none | two").expect_err("a row of two columns");
        assert_eq!(error.line, 3);
        assert!(parse(&ROW.replace("#closing", "")).is_err(), "the page of a row needs a heading");
        assert!(parse(&ROW.replace("b rakwire", "b other")).is_err(), "`other` is not a library");
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
