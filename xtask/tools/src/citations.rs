//! Checks that citations of docs/ in comments, and the links of documents to documents, are valid, including anchors.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::LazyLock;

use anyhow::{Result, bail};
use regex::Regex;
use xtask::shell::Shell;
use xtask::site::{anchors, resolved};
use xtask::tracked;

use crate::modules::uses::regex;

/// Matches the path of a document from the root of the repository. A longer path or a URL does not match, because it
/// leads to another folder.
static CITATION: LazyLock<Regex> =
    LazyLock::new(|| regex(r"(?:^|[^\w/.-])(docs/[\w/.-]*\.md)(?:#([\w-]+))?"));
static LINK: LazyLock<Regex> = LazyLock::new(|| regex(r"\]\(([\w/.-]+\.md|)(?:#([\w-]+))?\)"));
/// Files with tests that cite missing documents.
const NOT_READ: [&str; 3] =
    ["xtask/tools/src/citations.rs", "xtask/tools/src/documents.rs", "xtask/src/site/"];

/// The anchors of each document.
type Documents = BTreeMap<String, BTreeSet<String>>;

/// The stage of `cargo xtask check`.
pub(crate) fn stage(shell: &Shell) -> Result<()> {
    let files = tracked::files(shell)?;
    let mut documents = Documents::new();
    for path in files.iter().filter(|path| path.ends_with(".md")) {
        documents.insert(path.clone(), anchors(&shell.read(path)?));
    }
    let (mut problems, mut count) = (Vec::new(), 0);
    for path in files.iter().filter(|path| !NOT_READ.iter().any(|start| path.starts_with(start))) {
        // Symbolic links are skipped, because the links of a document are relative to its own folder. Binary files are
        // skipped too.
        let Ok(text) = fs::read_to_string(shell.path(path)) else { continue };
        if !shell.path(path).is_symlink() {
            count += check(path, &text, &documents, &mut problems);
        }
    }
    if !problems.is_empty() {
        bail!("citations of documents or anchors that do not exist:\n\n{}", problems.join("\n"));
    }
    shell.print(format_args!("{count} citations of docs/ are valid"));
    Ok(())
}

/// Adds the problems of a file; returns the number of its citations.
fn check(path: &str, text: &str, documents: &Documents, problems: &mut Vec<String>) -> usize {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut count = 0;
    for (number, line) in (1..).zip(text.lines()) {
        let cited = CITATION.captures_iter(line).map(|found| (found[1].to_owned(), found));
        let is_document = path.ends_with(".md");
        let links = LINK
            .captures_iter(if is_document { line } else { "" })
            .filter(|found| !found[1].starts_with("docs/"));
        let links = links.map(|found| match &found[1] {
            "" => (path.to_owned(), found),
            target => (resolved(folder, target), found),
        });
        for (document, found) in cited.chain(links) {
            count += 1;
            match (documents.get(&document), found.get(2)) {
                (None, _) => problems.push(format!("{path}:{number}: there is no {document}")),
                (Some(anchors), Some(anchor)) if !anchors.contains(anchor.as_str()) => {
                    problems.push(format!("{path}:{number}: {document} has no anchor {}", anchor.as_str()));
                }
                (Some(_), _) => {}
            }
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_and_anchors_must_exist() {
        let page = "# The wire, in `our` words\n\n<a id=\"cookies\"></a>\n## Opening a connection\n";
        let documents =
            [("docs/raknet.md".to_owned(), anchors(page)), ("README.md".to_owned(), BTreeSet::new())].into();
        let problems = |path: &str, text: &str| {
            let mut problems = Vec::new();
            check(path, text, &documents, &mut problems);
            problems
        };
        assert_eq!(
            problems("a.rs", "// See docs/raknet.md, (docs/raknet.md#cookies). x/docs/gone.md"),
            [""; 0]
        );
        let good = "[a](#cookies) [b](../README.md) [c](https://example.org/x.md) [d](raknet.md#opening-a-connection)";
        assert_eq!(problems("docs/raknet.md", good), [""; 0]);
        let expected = ["a.rs:1: docs/raknet.md has no anchor gone", "a.rs:1: there is no docs/wire.md"];
        assert_eq!(problems("a.rs", "//! (docs/raknet.md#gone) and `docs/wire.md`."), expected);
        let expected = [
            "docs/raknet.md:1: docs/raknet.md has no anchor gone",
            "docs/raknet.md:1: there is no docs/gone.md",
        ];
        assert_eq!(problems("docs/raknet.md", "[a](#gone) [b](gone.md)"), expected);
    }
}
