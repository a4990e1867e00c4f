//! Checks that citations of docs/ in comments and documents are valid, including the anchor.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Result, bail};

use xtask::shell::Shell;
use xtask::site::{anchors, resolved};
use xtask::tracked;

/// This file, and the builder of the book, of which the tests are not read. Both cite documents that do not exist.
const NOT_READ: &str = "xtask/tools/src/citations.rs";
const TESTS_NOT_READ: &str = "xtask/src/site/";

/// The stage of `cargo xtask check`.
pub(crate) fn stage(shell: &Shell) -> Result<()> {
    let files = tracked::files(shell)?;
    let mut documents = BTreeMap::new();
    for path in files.iter().filter(|path| path.ends_with(".md")) {
        documents.insert(path.clone(), anchors(&shell.read(path)?));
    }
    let mut problems = Vec::new();
    let mut count = 0;
    for path in files.iter().filter(|path| *path != NOT_READ) {
        // The links of a document are relative to its own folder, not to that of a symbolic link to it.
        if shell.path(path).is_symlink() {
            continue;
        }
        // Binary files cite nothing.
        let Ok(text) = fs::read_to_string(shell.path(path)) else { continue };
        let all = citations(path, read_part(path, &text));
        count += all.len();
        let wrong = all.iter().filter_map(|citation| Some((citation.line, citation.problem(&documents)?)));
        problems.extend(wrong.map(|(line, problem)| format!("{path}:{line}: {problem}")));
    }
    if !problems.is_empty() {
        bail!("citations of missing places:\n\n{}", problems.join("\n"));
    }
    shell.print(format_args!("{count} citations of docs/ are valid"));
    Ok(())
}

/// The part of a file that cites documents which must exist.
fn read_part<'t>(path: &str, text: &'t str) -> &'t str {
    let code = path.starts_with(TESTS_NOT_READ).then(|| text.split("\n#[cfg(test)]\n").next()).flatten();
    code.unwrap_or(text)
}

/// A mention of a document, or of a place in it.
#[derive(Debug, PartialEq, Eq)]
struct Citation {
    line: usize,
    /// The path in the repository.
    document: String,
    anchor: Option<String>,
}

impl Citation {
    fn problem(&self, documents: &BTreeMap<String, BTreeSet<String>>) -> Option<String> {
        let Self { document, anchor, .. } = self;
        match (documents.get(document), anchor) {
            (None, _) => Some(format!("there is no {document}")),
            (Some(anchors), Some(anchor)) if !anchors.contains(anchor) => {
                Some(format!("{document} has no anchor {anchor}"))
            }
            (Some(_), _) => None,
        }
    }
}

/// Returns all citations of a file: `docs/NAME.md`, `docs/NAME.md#anchor`, and the links of a document to documents.
fn citations(path: &str, text: &str) -> Vec<Citation> {
    let mut found = Vec::new();
    for (line, content) in (1..).zip(text.lines()) {
        for (at, _) in content.match_indices("docs/") {
            // A match inside a longer path or a URL is another folder.
            if !content[..at].ends_with(|c: char| c.is_alphanumeric() || "/-_.".contains(c)) {
                found.extend(citation(line, "", &content[at..]));
            }
        }
        let links = if path.ends_with(".md") { content.split("](").skip(1) } else { "".split("](").skip(1) };
        for target in links.filter(|target| !target.contains("://") && !target.starts_with("docs/")) {
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            match target.strip_prefix('#') {
                Some(rest) => {
                    let anchor = Some(anchor_at(rest).to_owned());
                    found.push(Citation { line, document: path.to_owned(), anchor });
                }
                None => found.extend(citation(line, folder, target)),
            }
        }
    }
    found
}

/// Returns the citation at the beginning of a text, with a path that is relative to a folder.
fn citation(line: usize, folder: &str, text: &str) -> Option<Citation> {
    let end = text.find(|c: char| !c.is_alphanumeric() && !"/-_.".contains(c)).unwrap_or(text.len());
    let name = text[..end].trim_end_matches('.');
    if !name.ends_with(".md") {
        return None;
    }
    let anchor = text[name.len()..].strip_prefix('#').map(|rest| anchor_at(rest).to_owned());
    Some(Citation { line, document: resolved(folder, name), anchor })
}

fn anchor_at(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '-' && c != '_').unwrap_or(text.len());
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "\
# The wire, in `our` words

<a id=\"cookies\"></a>
## Opening a connection
```
# no heading
```
";

    fn problems(path: &str, text: &str) -> Vec<String> {
        let documents = BTreeMap::from([
            ("docs/raknet.md".to_owned(), anchors(PAGE)),
            ("README.md".to_owned(), BTreeSet::new()),
        ]);
        let all = citations(path, text);
        all.iter().filter_map(|citation| citation.problem(&documents)).collect()
    }

    #[test]
    fn documents_cited_in_comments_must_exist() {
        assert!(problems("core/src/lib.rs", "// See docs/raknet.md, docs/raknet.md#cookies.").is_empty());
        assert_eq!(
            problems("core/src/lib.rs", "//! (docs/raknet.md#cookie) and `docs/wire.md`."),
            ["docs/raknet.md has no anchor cookie", "there is no docs/wire.md"]
        );
        assert!(problems("a.ts", "const url = 'https://example.org/docs/other.md'").is_empty());
        assert!(problems("a.rs", "the tables of docs/ are read").is_empty());
    }

    #[test]
    fn tests_with_invented_citations_are_not_read() {
        let text = "// docs/wire.md\n#[cfg(test)]\nmod tests { // docs/gone.md }";
        assert_eq!(read_part("xtask/src/site/book.rs", text), "// docs/wire.md");
        assert_eq!(read_part("xtask/src/cli.rs", text), text);
    }

    #[test]
    fn links_of_documents_must_lead_somewhere() {
        let good = "[a](#cookies) [b](../README.md) [c](https://example.org/x.md) [d](raknet.md#opening-a-connection)";
        assert!(problems("docs/raknet.md", good).is_empty());
        assert_eq!(
            problems("docs/raknet.md", "[a](#gone) [b](gone.md)"),
            ["docs/raknet.md has no anchor gone", "there is no docs/gone.md"]
        );
    }
}
