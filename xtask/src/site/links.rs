//! Checks the links of the book's built pages: each must lead to an existing file and anchor.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

/// Folders that other tools write; these check their own links. A book built alone has neither.
const NOT_CHECKED: [&str; 2] = ["api", "demo"];

/// The links and anchors of a page.
struct Page {
    links: Vec<String>,
    places: BTreeSet<String>,
}

/// Checks all links of the book, and returns the numbers of links and pages.
pub(super) fn check(site: &Path) -> Result<(usize, usize)> {
    let mut pages = BTreeMap::new();
    read(site, "", &mut pages)?;
    let mut wrong = Vec::new();
    for (path, page) in &pages {
        for link in &page.links {
            wrong.extend(problem(site, &pages, path, link).map(|problem| format!("{path}: {problem}")));
        }
    }
    if !wrong.is_empty() {
        bail!("broken links of the site:\n  {}", wrong.join("\n  "));
    }
    Ok((pages.values().map(|page| page.links.len()).sum(), pages.len()))
}

/// Reads the pages of a folder and its subfolders.
fn read(site: &Path, folder: &str, pages: &mut BTreeMap<String, Page>) -> Result<()> {
    let here = site.join(folder);
    for entry in fs::read_dir(&here).with_context(|| format!("{} cannot be read", here.display()))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
        if entry.file_type()?.is_dir() {
            if !NOT_CHECKED.contains(&path.as_str()) {
                read(site, &path, pages)?;
            }
        } else if path.ends_with(".html") {
            pages.insert(path, Page::parse(&fs::read_to_string(entry.path())?));
        }
    }
    Ok(())
}

/// Returns the reason why a link of a page is wrong.
fn problem(site: &Path, pages: &BTreeMap<String, Page>, page: &str, link: &str) -> Option<String> {
    if link.contains(':') || link.starts_with("//") {
        return None;
    }
    let (path, place) = link.split_once('#').unwrap_or((link, ""));
    let path = path.split('?').next().unwrap_or_default();
    let target = if path.is_empty() { page.to_owned() } else { resolved(page, path) };
    let folder = target.split('/').next().unwrap_or_default();
    if NOT_CHECKED.contains(&folder) && !site.join(folder).exists() {
        return None;
    }
    if !site.join(&target).is_file() {
        return Some(format!("{link} leads to {target}, which does not exist"));
    }
    let places = &pages.get(&target)?.places;
    (!place.is_empty() && !places.contains(place)).then(|| format!("{link}: {target} has no anchor {place}"))
}

/// Returns the path of a link in the site.
fn resolved(page: &str, link: &str) -> String {
    let mut parts: Vec<_> = page.split('/').collect();
    parts.pop();
    if link.starts_with('/') {
        parts.clear();
    }
    for part in link.split('/').filter(|part| !part.is_empty() && *part != ".") {
        if part == ".." {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    parts.join("/")
}

impl Page {
    fn parse(html: &str) -> Self {
        let (mut links, mut places) = (Vec::new(), BTreeSet::new());
        for (at, _) in html.match_indices('<') {
            let tag = html.get(at + 1..).unwrap_or_default();
            if !tag.starts_with(|first: char| first.is_ascii_alphabetic()) {
                continue;
            }
            let tag = tag.split('>').next().unwrap_or_default();
            links.extend(["href", "src"].iter().filter_map(|name| attribute(tag, name)));
            places.extend(["id", "name"].iter().filter_map(|name| attribute(tag, name)));
        }
        Self { links, places }
    }
}

/// Returns the value of an attribute of a tag.
fn attribute(tag: &str, name: &str) -> Option<String> {
    let value = tag.split_once(&format!(" {name}=\""))?.1.split('"').next()?;
    Some(value.replace("&amp;", "&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_anchors_are_read_from_tags_only() {
        let page = Page::parse(
            "<p id=\"a\">1 < 2 <a class=\"x\" href=\"b.html?c&amp;d#e\">href=\"no\"</a><img src=\"f.svg\">",
        );
        assert_eq!(page.links, ["b.html?c&d#e", "f.svg"]);
        assert_eq!(page.places.into_iter().collect::<Vec<_>>(), ["a"]);
    }

    #[test]
    fn links_are_relative_to_the_folder_of_their_page() {
        assert_eq!(resolved("docs/a.html", "../native/b.html"), "native/b.html");
        assert_eq!(resolved("docs/a.html", "./b.html"), "docs/b.html");
        assert_eq!(resolved("a.html", "/demo/index.html"), "demo/index.html");
    }

    #[test]
    fn links_to_missing_pages_and_anchors_are_problems() {
        let site = std::env::temp_dir().join(format!("rakwire-site-{}", std::process::id()));
        fs::create_dir_all(site.join("api")).unwrap();
        fs::write(
            site.join("a.html"),
            "<p id=\"x\"><a href=\"#x\"><a href=\"api/b.html\"><a href=\"https://c\"><a href=\"demo/d.html\">",
        )
        .unwrap();
        fs::write(site.join("api/b.html"), "<a href=\"not-checked.html\">").unwrap();
        let good = check(&site).unwrap();
        fs::write(site.join("a.html"), "<a href=\"#y\"><a href=\"c.html\">").unwrap();
        let wrong = format!("{:#}", check(&site).unwrap_err());
        fs::remove_dir_all(&site).unwrap();
        assert_eq!(good, (4, 1));
        assert!(
            wrong.contains("a.html has no anchor y") && wrong.contains("c.html, which does not exist"),
            "{wrong}"
        );
    }
}
