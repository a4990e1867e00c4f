//! Documents as pages of the book: each section of a long document becomes a page.
//!
//! Comments and tests cite documents by path and anchor, so the documents stay whole in the repository.

use std::collections::BTreeSet;

/// The maximum number of words of a page, about ten minutes of reading. Longer documents and sections are split.
pub(super) const LONGEST: usize = 2_000;

/// A page of the book.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Page {
    /// The path, as if the page was a file of the repository.
    pub(super) path: String,
    /// The heading, for the table of contents.
    pub(super) title: String,
    /// Its depth below the document in the table of contents.
    pub(super) depth: usize,
    pub(super) text: String,
}

/// Returns the anchors of a text: its headings and its `<a id="…">`.
pub fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    for (line, _) in lines(text).filter(|(_, is_code)| !is_code) {
        anchors.extend(heading(line).map(|(_, title)| slug(title)));
        let ids = line.split("<a id=\"").skip(1);
        anchors.extend(ids.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())));
    }
    anchors
}

/// Splits a long document at its second-level headings, and long sections at their third-level headings.
pub(super) fn split(path: &str, text: &str) -> Vec<Page> {
    let whole = Page { path: path.to_owned(), title: String::new(), depth: 0, text: text.to_owned() };
    let mut pages = Vec::new();
    for section in parts(path, whole) {
        if section.depth == 0 { pages.push(section) } else { pages.extend(parts(path, section)) }
    }
    pages
}

/// Returns a page, and one page per section if it is too long.
fn parts(document: &str, page: Page) -> Vec<Page> {
    if words(&page.text) <= LONGEST {
        return vec![page];
    }
    let depth = page.depth + 1;
    let stem = document.strip_suffix(".md").unwrap_or(document);
    let mut pages = vec![Page { text: String::new(), ..page.clone() }];
    for (line, is_code) in lines(&page.text) {
        // Each page begins with a first-level heading.
        if let Some((2, title)) = heading(line).filter(|_| !is_code) {
            let path = format!("{stem}-{}.md", slug(title));
            let text = pages.last_mut().map_or_else(String::new, |before| taken_anchors(&mut before.text));
            pages.push(Page { path, title: title.to_owned(), depth, text });
        }
        if let Some(page) = pages.last_mut() {
            let is_raised = page.depth == depth && !is_code && line.starts_with("##");
            page.text += if is_raised { &line[1..] } else { line };
            page.text.push('\n');
        }
    }
    list_sections(&mut pages);
    pages
}

/// Removes and returns the anchors at the end of a text, which belong to the heading after it.
fn taken_anchors(text: &mut String) -> String {
    let mut at = text.trim_end().len();
    while let Some(line) =
        text[..at].lines().last().filter(|line| line.starts_with("<a id=") && line.ends_with("</a>"))
    {
        at = text[..at].len() - line.len();
        at = text[..at].trim_end().len();
    }
    let taken = text.split_off(at);
    text.push('\n');
    taken.trim_start().to_owned()
}

/// Ends the first page with a list of the others.
fn list_sections(pages: &mut [Page]) {
    let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let others: Vec<_> =
        pages.iter().skip(1).map(|page| format!("- [{}]({})\n", page.title, name(&page.path))).collect();
    if let (Some(first), false) = (pages.first_mut(), others.is_empty()) {
        first.text = format!("{}\n\nIn this chapter:\n\n{}", first.text.trim_end(), others.concat());
    }
}

/// Returns the number of words, without the borders of tables.
pub(super) fn words(text: &str) -> usize {
    text.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).count()
}

/// Returns the lines of a text, each with true if it belongs to a fenced block or is its fence.
pub(super) fn lines(text: &str) -> impl Iterator<Item = (&str, bool)> {
    let mut is_fenced = false;
    text.lines().map(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_fenced ^= is_fence;
        (line, is_fenced || is_fence)
    })
}

/// Returns a text with empty lines in place of fenced blocks.
pub fn prose(text: &str) -> String {
    lines(text).flat_map(|(line, is_code)| [if is_code { "" } else { line }, "\n"]).collect()
}

/// Returns the level and the text of a heading.
fn heading(line: &str) -> Option<(usize, &str)> {
    let title = line.trim_start_matches('#');
    let level = line.len() - title.len();
    title.strip_prefix(' ').filter(|_| level > 0).map(|title| (level, title.trim()))
}

/// Returns the anchor of a heading, as mdBook and GitHub generate it.
fn slug(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || "-_ ".contains(*c));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_document_is_one_page() {
        let text = "# A\n\n## B\n\ntext\n";
        let pages = split("docs/a.md", text);
        assert_eq!(pages.len(), 1);
        assert_eq!(pages[0].text, text);
        assert_eq!(anchors(&pages[0].text).into_iter().collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn long_documents_and_long_sections_are_split_at_headings() {
        let long = "word ".repeat(LONGEST);
        let text = format!(
            "# A\nintro\n\n<a id=\"x\"></a>\n## One `b`\n```\n## no\n```\n### C\n{long}\n## Two\nend\n"
        );
        let pages = split("docs/a.md", &text);
        let found: Vec<_> = pages.iter().map(|page| (page.path.as_str(), page.depth)).collect();
        assert_eq!(
            found,
            [("docs/a.md", 0), ("docs/a-one-b.md", 1), ("docs/a-c.md", 2), ("docs/a-two.md", 1)]
        );
        assert_eq!(
            pages[0].text,
            "# A\nintro\n\nIn this chapter:\n\n- [One `b`](a-one-b.md)\n- [Two](a-two.md)\n"
        );
        assert!(
            pages[1].text.starts_with("<a id=\"x\"></a>\n# One `b`\n```\n## no\n```\n"),
            "{}",
            pages[1].text
        );
        assert!(pages[2].text.starts_with("# C\nword"));
        assert!(anchors(&pages[1].text).contains("x") && !anchors(&pages[1].text).contains("no"));
    }
}
