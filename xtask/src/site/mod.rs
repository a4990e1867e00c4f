//! The site: the book, the references of the libraries and the pages of the demo, in one folder for any static host.

mod book;
mod pages;
mod readers;

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Result, bail};

pub use self::book::resolved;
use self::book::{Book, NOT_OF_THE_BOOK};
pub use self::pages::{anchors, prose};
use crate::artifacts::{self, PAGE};
use crate::files;
use crate::setup::Need;
use crate::shell::Shell;
use crate::targets::WASM;
use crate::tracked;

/// The needs of the site.
pub const NEEDS: [Need; 3] = [Need::MdBook, Need::Page, Need::BundlerPackages];
/// The folder of the finished site.
const SITE: &str = "target/site";
/// The folder in which mdBook finds its configuration and the sources of the book.
const BOOK: &str = "target/site-book";
/// The settings of the book, and its table of contents.
const SETTINGS: &str = "docs/book.toml";
const CONTENTS: &str = "docs/SUMMARY.md";
/// The style and the script of the book, mainly for tables on a phone.
const STYLES: [&str; 2] = ["book.css", "book.js"];
/// The front page, which redirects to the first page of the book in its folder, to which the links are relative.
const FRONT_PAGE: &str = "\
<!doctype html>
<html lang=\"en\">
<meta charset=\"utf-8\">
<meta http-equiv=\"refresh\" content=\"0; url=docs/introduction.html\">
<title>rakwire</title>
<a href=\"docs/introduction.html\">The book of rakwire</a>
</html>
";
/// The libraries with a reference, except `rakwire-wasm`, which is built for browsers.
const LIBRARIES: [&str; 6] =
    ["rakwire", "rakwire-derive", "rakwire-native", "rakwire-extras", "rakwire-plugins", "rakwire-embassy"];

/// Builds the site, and checks that the files to which the book links exist. Requires [`NEEDS`].
pub fn build(shell: &Shell) -> Result<()> {
    let site = shell.path(SITE);
    let linked = book(shell, &site)?;
    rust_references(shell, &site.join("api"))?;
    // TypeDoc writes to the folder that wasm/typedoc.json specifies.
    shell.cmd_in("wasm/tests/bundlers", "npm", ["run", "doc"]).run()?;
    files::copy_folder(&shell.path("target/doc-npm"), &site.join("api/npm"))?;
    files::copy_folder(&shell.path(PAGE), &site.join("demo"))?;
    check_files(&site, &linked)
}

/// Builds only the book and checks its links.
pub fn build_book(shell: &Shell) -> Result<()> {
    book(shell, &shell.path(SITE)).map(drop)
}

fn check_files(site: &Path, linked: &BTreeSet<String>) -> Result<()> {
    let missing: Vec<_> = linked.iter().filter(|file| !site.join(file).is_file()).cloned().collect();
    if !missing.is_empty() {
        bail!("the book links to files that the site does not have: {}", missing.join(", "));
    }
    Ok(())
}

/// Empties the site, and builds the book at its root. Returns the files to which the book links.
fn book(shell: &Shell, site: &Path) -> Result<BTreeSet<String>> {
    let folder = shell.path(BOOK);
    files::remove_folder(&folder)?;
    let (book, mut linked) = (sources(shell)?, BTreeSet::new());
    files::write(&folder.join("src/SUMMARY.md"), &book.contents)?;
    for page in &book.pages {
        let (text, needed) = book.linked(page)?;
        files::write(&folder.join("src").join(&page.path), &text)?;
        for file in needed {
            linked.insert(file.clone());
            if NOT_OF_THE_BOOK.iter().any(|start| file.starts_with(start)) {
                continue;
            }
            files::copy(&shell.path(&file), &folder.join("src").join(&file))?;
        }
    }
    files::write(&folder.join("book.toml"), &shell.read(SETTINGS)?)?;
    for style in STYLES {
        files::write(&folder.join(style), &shell.read(&format!("docs/{style}"))?)?;
    }
    files::remove_folder(site)?;
    shell.cmd("mdbook", ["build", BOOK, "--dest-dir", &site.to_string_lossy()]).run()?;
    files::write(&site.join("index.html"), FRONT_PAGE)?;
    shell.print(format_args!("{SITE}: the links of {} pages are valid", book.pages.len()));
    Ok(linked)
}

fn sources(shell: &Shell) -> Result<Book> {
    Book::new(&shell.read(CONTENTS)?, &tracked::files(shell)?, |path| shell.read(path))
}

/// Builds the references of the Rust libraries. That of `rakwire-wasm` is built for the browser target.
fn rust_references(shell: &Shell, api: &Path) -> Result<()> {
    let target = artifacts::target_dir(shell)?;
    let packages = LIBRARIES.iter().flat_map(|library| ["-p", library]);
    let doc = ["doc", "--no-deps", "--all-features", "--lib"];
    let here = shell.cmd("cargo", doc.into_iter().chain(packages));
    let browsers = ["-p", "rakwire-wasm", "--target", WASM];
    let browsers = shell.cmd_for(WASM, ".", "cargo", doc.into_iter().chain(browsers));
    for (command, from, to) in [
        (here, target.join("doc"), api.to_path_buf()),
        (browsers, target.join(WASM).join("doc"), api.join("browsers")),
    ] {
        // Earlier commands may have left references of other crates.
        files::remove_folder(&from)?;
        command.run()?;
        files::copy_folder(&from, &to)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_links_of_all_pages_have_existing_targets() {
        let book = sources(&Shell::new().unwrap()).unwrap();
        let problems = book.pages.iter().filter_map(|page| book.linked(page).err());
        let problems: Vec<_> = problems.map(|problem| format!("{problem:#}")).collect();
        assert!(problems.is_empty(), "{problems:#?}");
    }

    #[test]
    fn no_page_takes_more_than_ten_minutes_to_read() {
        let book = sources(&Shell::new().unwrap()).unwrap();
        let long = book.pages.iter().filter(|page| pages::words(&page.text) > pages::LONGEST);
        let long: Vec<_> =
            long.map(|page| format!("{}: {} words", page.path, pages::words(&page.text))).collect();
        assert!(long.is_empty(), "{long:#?}");
    }

    #[test]
    fn each_library_lists_all_features_in_the_same_order() {
        let shell = Shell::new().unwrap();
        let names = |path: &str, start: &str, end: &str| {
            let text = shell.read(path).unwrap();
            // The table of other languages lists no features.
            let text = text.split("\n## Other languages\n").next().unwrap_or_default().replace("\n  ", " ");
            let name = |line: &str| Some(line.strip_prefix(start)?.split(end).next()?.trim().to_owned());
            text.lines().filter_map(name).collect::<Vec<_>>()
        };
        let mut features = names("docs/features.md", "| ", "|");
        features.retain(|feature| feature != "feature");
        assert!(features.len() > 70, "{features:?}");
        for library in ["core", "native", "npm", "browsers", "boards"] {
            assert_eq!(names(&format!("docs/features-{library}.md"), "- **", "**"), features, "{library}");
        }
    }

    /// `rakwire-udp` is a part of others, and `rakwire-relay` and `rakwire-cli` are programs.
    #[test]
    fn every_published_package_has_a_page_and_every_library_a_reference() {
        let shell = Shell::new().unwrap();
        let (contents, api) = (shell.read(CONTENTS).unwrap(), shell.read("docs/api.md").unwrap());
        for file in tracked::files(&shell).unwrap().iter().filter(|file| file.ends_with("Cargo.toml")) {
            let (manifest, folder) = (shell.read(file).unwrap(), file.trim_end_matches("Cargo.toml"));
            let name = manifest.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
            let Some(name) = name.filter(|_| !manifest.contains("publish = false")) else { continue };
            let is_part = name == "rakwire-udp";
            assert!(is_part || contents.contains(&format!("](../{folder}README.md)")), "{name} has no page");
            if !is_part && !["rakwire-relay", "rakwire-cli"].contains(&name) {
                assert!(api.contains(&format!("`cargo doc -p {name} ")), "docs/api.md lacks {name}");
                assert!(LIBRARIES.contains(&name) || name == "rakwire-wasm", "{name} has no reference");
            }
        }
    }
}
