//! Tests that the header and the exported symbols match the sources.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

const SOURCES: [&str; 11] = [
    "codes",
    "types",
    "options",
    "lifecycle",
    "waiting",
    "connections",
    "messages",
    "unconnected",
    "statistics",
    "security",
    "secure_peer",
];

/// Generates the header from the sources.
fn generate() -> String {
    let folder = crate::common::folder();
    let config = cbindgen::Config::from_file(folder.join("cbindgen.toml")).expect("cbindgen.toml");
    let mut builder = cbindgen::Builder::new().with_config(config);
    for source in SOURCES {
        builder = builder.with_src(folder.join(format!("src/{source}.rs")));
    }
    let mut header = Vec::new();
    builder.generate().expect("sources that cbindgen reads").write(&mut header);
    String::from_utf8(header).expect("text")
}

/// `RAKWIRE_WRITE_HEADER=1 cargo test header` updates the header.
#[test]
fn the_committed_header_matches_the_sources() {
    let path = crate::common::folder().join("include/rakwire.h");
    let header = generate();
    if std::env::var_os("RAKWIRE_WRITE_HEADER").is_some() {
        fs::write(&path, &header).expect("a header to write");
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == header,
        "include/rakwire.h is outdated; run RAKWIRE_WRITE_HEADER=1 cargo test header"
    );
}

/// Returns the names of the functions that the header declares.
fn declared() -> BTreeSet<String> {
    let header = fs::read_to_string(crate::common::folder().join("include/rakwire.h")).expect("a header");
    let code =
        header.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
    let words = code.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '(');
    words
        .filter_map(|word| word.split_once('(').map(|(name, _)| name.to_owned()))
        .filter(|name| name.starts_with("rakwire_"))
        .collect()
}

#[test]
fn the_shared_library_exports_exactly_the_functions_of_the_header() {
    let declared = declared();
    assert!(declared.len() > 40, "{declared:?}");
    let library = crate::common::shared_library();
    let output = Command::new("nm").args(["-D", "--defined-only", "--format=posix"]).arg(&library).output();
    let output = output.expect("nm, of the package binutils");
    let exported: BTreeSet<String> = String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| line.split_whitespace().next().map(str::to_owned))
        .collect();
    assert_eq!(exported, declared);
}

#[test]
fn random_calls_include_every_function_of_the_header() {
    let calls = include_str!("../../src/random_calls.rs");
    let missing: Vec<_> =
        declared().into_iter().filter(|name| !calls.contains(&format!("{name}("))).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn the_shared_library_has_a_versioned_soname() {
    let output = Command::new("readelf").arg("-d").arg(crate::common::shared_library()).output();
    let output = output.expect("readelf, of the package binutils");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let major = env!("CARGO_PKG_VERSION_MAJOR");
    assert!(text.contains(&format!("Library soname: [librakwire_c.so.{major}]")), "{text}");
}
