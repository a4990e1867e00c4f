//! What is in a package: all that its users need, and nothing that nobody does.

use std::io::Read;

use anyhow::{Context, Result, bail};
use flate2::read::GzDecoder;

use super::archive;
use super::manifest::Published;
use xtask::shell::Shell;

/// What every package has besides its code.
const REQUIRED: [&str; 4] = ["Cargo.toml", "README.md", "LICENSE-MIT", "LICENSE-APACHE"];
/// What cargo adds.
const ADDED: [&str; 3] = [".cargo_vcs_info.json", "Cargo.lock", "Cargo.toml.orig"];
/// Folders, and what the names of the files in them end with.
const FOLDERS: [(&str, &[&str]); 8] = [
    ("src/", &[".rs", ".sql", ".txt"]),
    ("examples/", &[".rs", ".mjs"]),
    // Files for operators, of all kinds. Tests of the relay read them.
    ("packaging/", &[""]),
    // What JavaScript and Rust agree on; a test compares.
    ("ts/", &[".ts"]),
    ("tests/documents/", &[".md"]),
    ("tests/vectors/", &[".json"]),
    ("tests/proptest-regressions/", &[".txt"]),
    ("tests/", &[".rs", "/README.md", ".sh"]),
];
/// How large the file of a package may be in bytes. The largest has 600 KB, most of them tests and recorded packets.
const LARGEST: u64 = 700_000;

/// Checks the file of a package, and says what it has.
pub(super) fn check(shell: &Shell, package: &Published) -> Result<String> {
    let path = archive::file(shell, package)?;
    let size = path.metadata().context("the package cannot be read")?.len();
    let file = std::fs::File::open(&path).with_context(|| format!("{} cannot be read", path.display()))?;
    let names = names(GzDecoder::new(file), &package.folder_name())?;
    let mut faults = faults(&names);
    if size > LARGEST {
        faults.push(format!("the package has {size} bytes, more than {LARGEST}"));
    }
    if !faults.is_empty() {
        bail!("{}:\n  {}", path.display(), faults.join("\n  "));
    }
    Ok(format!("{} files, {} KB", names.len(), size / 1_000))
}

/// The files of an archive, all of which lie in one folder.
fn names(archive: impl Read, folder: &str) -> Result<Vec<String>> {
    let mut archive = tar::Archive::new(archive);
    let mut names = Vec::new();
    for entry in archive.entries()? {
        let path = entry?.path()?.into_owned();
        let name = path.strip_prefix(folder).with_context(|| format!("{} lies elsewhere", path.display()))?;
        names.push(name.display().to_string());
    }
    Ok(names)
}

/// What a package lacks or should not have.
fn faults(names: &[String]) -> Vec<String> {
    let is_there = |name: &str| names.iter().any(|other| other == name);
    let absent = REQUIRED.iter().filter(|name| !is_there(name)).map(|name| format!("{name} is missing"));
    let mut faults: Vec<String> = absent.collect();
    if !is_there("src/lib.rs") && !is_there("src/main.rs") {
        faults.push("there is neither a library nor a program".to_owned());
    }
    faults
        .extend(names.iter().filter(|name| !is_expected(name)).map(|name| format!("{name} is not expected")));
    faults
}

fn is_expected(name: &str) -> bool {
    let folder = FOLDERS.iter().find(|(folder, _)| name.starts_with(folder));
    match folder {
        Some((_, endings)) => endings.iter().any(|ending| name.ends_with(ending)),
        None => REQUIRED.contains(&name) || ADDED.contains(&name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_or_not_expected_is_named() {
        let list = |more: &[&str]| -> Vec<String> {
            REQUIRED.iter().chain(&ADDED).chain(more).map(|name| (*name).to_owned()).collect()
        };
        let good =
            ["src/lib.rs", "src/a/b.rs", "examples/echo.rs", "tests/it/main.rs", "tests/vectors/raknet.json"];
        assert_eq!(faults(&list(&good)), [""; 0]);
        assert_eq!(faults(&list(&["src/main.rs", "tests/README.md"])), [""; 0]);
        assert_eq!(faults(&list(&[])), ["there is neither a library nor a program"]);
        assert_eq!(faults(&list(&["src/lib.rs", "corpus/a.tar.gz"])), ["corpus/a.tar.gz is not expected"]);
        assert_eq!(faults(&list(&["src/lib.rs", "tests/a.pcap"])), ["tests/a.pcap is not expected"]);
        assert_eq!(faults(&list(&["src/lib.rs"])[1..]), ["Cargo.toml is missing"]);
    }

    #[test]
    fn the_files_of_an_archive_are_listed() {
        let mut archive = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_size(2);
        header.set_cksum();
        archive.append_data(&mut header, "a-1/src/lib.rs", &b"//"[..]).unwrap();
        let bytes = archive.into_inner().unwrap();
        assert_eq!(names(&bytes[..], "a-1").unwrap(), ["src/lib.rs"]);
        assert!(names(&bytes[..], "b-1").is_err());
    }
}
