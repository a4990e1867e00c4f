//! The sources of the book for mdBook: its pages at their paths in the repository, and the files that they link to.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};

use super::pages::{self, Page};
use super::readers;

/// The folder of the table of contents, to which its links are relative.
const DOCUMENTS: &str = "docs";
/// The parts of the book for contributors. Pages of other parts cite no tests.
const FOR_MAINTAINERS: [&str; 2] = ["Design and measurements", "Contributing"];
/// Folders of the site that other tools write.
pub(super) const NOT_OF_THE_BOOK: [&str; 2] = ["api/", "demo/"];

/// The book before its links are resolved.
pub(super) struct Book {
    /// The table of contents, with the sections of long documents.
    pub(super) contents: String,
    pub(super) pages: Vec<Page>,
    /// The page of each document and anchor.
    places: BTreeMap<(String, String), String>,
    documents: BTreeSet<String>,
    files: BTreeSet<String>,
}

impl Book {
    /// Reads the documents of a table of contents. `files` are the files of the repository.
    pub(super) fn new(
        contents: &str,
        files: &[String],
        read: impl Fn(&str) -> Result<String>,
    ) -> Result<Self> {
        let mut book = Self {
            contents: String::new(),
            pages: Vec::new(),
            places: BTreeMap::new(),
            documents: BTreeSet::new(),
            files: files.iter().cloned().collect(),
        };
        let mut part = "";
        for line in contents.lines() {
            part = line.strip_prefix("# ").unwrap_or(part);
            let Some(target) = targets(line).next() else {
                book.contents += &format!("{line}\n");
                continue;
            };
            let document = resolved(DOCUMENTS, target);
            let text =
                read(&document).with_context(|| format!("the contents of the book refer to {document}"))?;
            let text = if FOR_MAINTAINERS.contains(&part) { text } else { readers::without_tests(&text) };
            book.add(line, &document, &text)?;
        }
        Ok(book)
    }

    /// Adds a document with its line in the table of contents.
    fn add(&mut self, line: &str, document: &str, text: &str) -> Result<()> {
        let indent = line.len() - line.trim_start().len();
        for page in pages::split(document, text) {
            for anchor in pages::anchors(&page.text) {
                self.places.entry((document.to_owned(), anchor)).or_insert_with(|| page.path.clone());
            }
            self.contents += &if page.depth == 0 {
                line.replace(targets(line).next().unwrap_or_default(), document) + "\n"
            } else {
                format!("{}- [{}]({})\n", " ".repeat(indent + 2 * page.depth), page.title, page.path)
            };
            if self.pages.iter().any(|other| other.path == page.path) {
                bail!(
                    "the book has two pages {}: rename the section \"{}\" of {document}",
                    page.path,
                    page.title
                );
            }
            self.pages.push(page);
        }
        self.documents.insert(document.to_owned());
        Ok(())
    }

    /// Returns the text of a page with its links adapted to the book, and the files to which it links: files of the
    /// repository, and files that other tools write to [`NOT_OF_THE_BOOK`].
    pub(super) fn linked(&self, page: &Page) -> Result<(String, BTreeSet<String>)> {
        let mut files = BTreeSet::new();
        let mut text = String::new();
        for (line, is_code) in pages::lines(&page.text) {
            if is_code {
                text += line;
            } else {
                let link = |target: &str| self.link(page, target, &mut files);
                text += &replaced(line, link).with_context(|| format!("{}: {line}", page.path))?;
            }
            text.push('\n');
        }
        Ok((text, files))
    }

    /// Returns a link in the form that the book needs. Adds files that are not pages to `files`. A link to a folder
    /// leads to its README.
    fn link(&self, page: &Page, target: &str, files: &mut BTreeSet<String>) -> Result<String> {
        if target.contains(':') {
            return Ok(target.to_owned());
        }
        let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
        let folder = page.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let mut document = if path.is_empty() { self.document_of(page) } else { resolved(folder, path) };
        if self.documents.contains(&format!("{document}/README.md")) {
            document += "/README.md";
        }
        if self.documents.contains(&document) || self.pages.iter().any(|page| page.path == document) {
            let place = self.places.get(&(document.clone(), anchor.to_owned()));
            if place.is_none() && !anchor.is_empty() {
                bail!("{document} has no anchor {anchor}");
            }
            let to = place.unwrap_or(&document);
            let anchor = if anchor.is_empty() { String::new() } else { format!("#{anchor}") };
            let same = *to == page.path && !anchor.is_empty();
            return Ok(if same { anchor } else { format!("{}{anchor}", relative(folder, to)) });
        }
        if document.ends_with(".md") {
            bail!("{document} is not in the contents of the book, docs/SUMMARY.md");
        }
        let is_of_others = NOT_OF_THE_BOOK.iter().any(|start| document.starts_with(start));
        if !is_of_others && !self.files.contains(&document) {
            bail!("there is no {document}");
        }
        files.insert(document);
        Ok(target.to_owned())
    }

    /// Returns the document that a page is a part of.
    fn document_of(&self, page: &Page) -> String {
        let at = self.pages.iter().position(|other| other == page).unwrap_or_default();
        let first = self.pages.iter().take(at + 1).rev().find(|page| page.depth == 0);
        first.map_or_else(String::new, |first| first.path.clone())
    }
}

/// Returns the link targets of a line.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0))
}

/// Replaces each link target in a line by the result of `target`.
fn replaced(line: &str, mut target: impl FnMut(&str) -> Result<String>) -> Result<String> {
    let mut parts = line.split("](");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for rest in parts {
        match rest.split_once(')') {
            Some((old, behind)) => text += &format!("]({}){behind}", target(old)?),
            None => text += &format!("]({rest}"),
        }
    }
    Ok(text)
}

/// Resolves a path relative to a folder, from the root of the repository.
pub fn resolved(folder: &str, path: &str) -> String {
    let mut parts: Vec<_> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
        if part == ".." {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    parts.join("/")
}

/// Returns the path from a folder to a file, both given from the root of the repository.
fn relative(folder: &str, file: &str) -> String {
    let up = folder.split('/').filter(|part| !part.is_empty()).count();
    match file.strip_prefix(folder).and_then(|below| below.strip_prefix('/')) {
        Some(below) if up > 0 => below.to_owned(),
        _ => "../".repeat(up) + file,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTENTS: &str =
        "# Guide\n- [One](one.md)\n  - [Two](../native/README.md)\n# Contributing\n- [Three](three.md)";

    fn book(one: &str) -> Result<Book> {
        let files =
            ["docs/one.md", "docs/images/a.svg", "docs/gone.md", "native/README.md", "native/examples/x.rs"];
        Book::new(CONTENTS, &files.map(str::to_owned), |path| {
            Ok(match path {
                "docs/one.md" => one.to_owned(),
                "native/README.md" => format!("# Two\n## B\n{}\n## C\nTests: `c`.\n", "word ".repeat(2_000)),
                _ => "# Three\nTests: `t`.\n".to_owned(),
            })
        })
    }

    #[test]
    fn the_contents_include_the_sections_of_long_documents() {
        let contents = book("# One\n").unwrap().contents;
        let expected = "# Guide\n- [One](docs/one.md)\n  - [Two](native/README.md)\n    - [B](native/README-b.md)\n    - [C](native/README-c.md)\n\
                        # Contributing\n- [Three](docs/three.md)\n";
        assert_eq!(contents, expected);
    }

    #[test]
    fn sections_with_the_same_title_are_an_error() {
        let error = book(&format!("# One\n## B\n{}\n## B\nx\n", "word ".repeat(2_000))).err().unwrap();
        assert!(error.to_string().ends_with(": rename the section \"B\" of docs/one.md"), "{error}");
    }

    #[test]
    fn only_pages_for_maintainers_cite_tests() {
        let book = book("# One\n").unwrap();
        let texts: Vec<_> = book.pages.iter().map(|page| page.text.contains("Tests:")).collect();
        assert_eq!(texts, [false, false, false, false, true]);
    }

    #[test]
    fn links_are_adapted_to_the_book_and_linked_files_are_listed() {
        let book = book("![a](images/a.svg) [x](../native/examples/x.rs) [n](../native/#c) [o](#one)\n# One\n```\n[no](gone)\n```\n").unwrap();
        let (text, files) = book.linked(&book.pages[0]).unwrap();
        let expected = "![a](images/a.svg) [x](../native/examples/x.rs) [n](../native/README-c.md#c) [o](#one)\n# One\n```\n[no](gone)\n```\n";
        assert_eq!(text, expected);
        assert_eq!(files.into_iter().collect::<Vec<_>>(), ["docs/images/a.svg", "native/examples/x.rs"]);
    }

    #[test]
    fn links_to_missing_pages_files_and_anchors_are_errors() {
        let problem = |link: &str| {
            let book = book(link).unwrap();
            format!("{:#}", book.linked(&book.pages[0]).unwrap_err())
        };
        assert!(
            problem("[a](gone.md)")
                .ends_with("docs/gone.md is not in the contents of the book, docs/SUMMARY.md")
        );
        assert!(problem("[a](x.rs)").ends_with("there is no docs/x.rs"));
        assert!(problem("[a](../native/README.md#gone)").ends_with("native/README.md has no anchor gone"));
        let good = book("[a](https://example.org/x.md) [b](../api/x/index.html)").unwrap();
        let (_, files) = good.linked(&good.pages[0]).unwrap();
        assert_eq!(files.into_iter().collect::<Vec<_>>(), ["api/x/index.html"]);
    }
}
