//! Checks of the dependencies between crates.

use std::collections::BTreeSet;

use anyhow::{Result, bail};
use serde_json::Value;

use crate::artifacts;
use crate::shell::Shell;
use crate::targets::WASM;

/// All crates that the core may depend on with any features: small crates that need no operating system. Those in the
/// second line are for defmt, and those in later lines for the cryptography of secure connections.
const CORE_MAY_USE: &str = "
    adler2 byteorder hash32 heapless libm miniz_oxide rand_core rand_pcg siphasher stable_deref_trait
    bitflags defmt thiserror
    aead base64ct blake2 block-buffer cfg-if chacha20 chacha20poly1305 cipher cmov cpufeatures crypto-common ctutils
    curve25519-dalek digest hmac hybrid-array inout poly1305 subtle typenum universal-hash x25519-dalek zeroize
";

/// Prefixes of crates that the relay must not depend on.
const RELAY_MUST_NOT_USE: [&str; 5] =
    ["embassy", "rakwire-cli", "rakwire-embassy", "rakwire-native", "rakwire-wasm"];
/// Crates that only programs may use, because users of the library would otherwise have to build them.
const NATIVE_MUST_NOT_USE: [&str; 6] =
    ["clap", "hdrhistogram", "indicatif", "rakwire-cli", "serde", "tracing-subscriber"];
/// Crates that the library may use for optional features only.
const NATIVE_MAY_USE_BY_FEATURE: [&str; 5] = ["bytes", "metrics", "rand_pcg", "tracing", "x25519-dalek"];
/// The maximum number of crates that are compiled for the library without features, including macros.
const NATIVE_MOST_CRATES: usize = 35;
const WASM_MUST_NOT_USE: [&str; 4] = ["tokio", "mio", "quinn", "rakwire-native"];
const EMBASSY_MUST_NOT_USE: [&str; 5] = ["tokio", "mio", "quinn", "getrandom", "rakwire-native"];

/// The dependencies between our crates, as in the code map of ARCHITECTURE.md. Tests may use further crates.
#[rustfmt::skip]
const OURS: [(&str, &[&str]); 20] = [
    ("rakwire", &["rakwire-derive"]),
    ("rakwire-derive", &[]),
    ("snowfight", &["rakwire"]),
    ("snowfight-replication", &["rakwire", "rakwire-plugins", "snowfight"]),
    ("snowfight-server", &["rakwire", "rakwire-extras", "rakwire-native", "rakwire-plugins", "snowfight", "snowfight-replication"]),
    ("snowfight-wasm", &["rakwire", "snowfight", "snowfight-replication"]),
    ("rakwire-native", &["rakwire", "rakwire-udp"]),
    ("rakwire-extras", &["rakwire", "rakwire-native", "rakwire-udp"]),
    ("rakwire-cli", &["rakwire", "rakwire-extras", "rakwire-native", "rakwire-plugins", "rakwire-udp"]),
    ("rakwire-embassy", &["rakwire"]),
    ("rakwire-wasm", &["rakwire"]),
    ("rakwire-plugins", &["rakwire", "rakwire-native", "rakwire-udp"]),
    ("rakwire-relay", &["rakwire", "rakwire-udp"]),
    ("rakwire-udp", &["rakwire"]),
    ("rakwire-interop", &["rakwire-native"]),
    ("rakwire-bench", &["rakwire", "rakwire-native", "snowfight"]),
    ("rakwire-worlds", &["rakwire", "rakwire-udp"]),
    ("xtask", &[]),
    ("xtask-tools", &["xtask"]),
    ("xtask-bindgen", &[]),
];
const ALL: &[&str] = &["--all-features"];
/// The packages of this repository that the pages may use.
const WEB_MAY_USE: [&str; 1] = ["file:../wasm"];

/// Checks for dependencies that the architecture forbids.
pub fn edges(shell: &Shell) -> Result<()> {
    let mut wrong = against(&OURS, &artifacts::metadata(shell)?);
    let pages: Value = serde_json::from_str(&shell.read("web/package.json")?)?;
    if pages["dependencies"].as_object().is_none_or(|used| used.is_empty()) {
        bail!("web/package.json has no dependencies");
    }
    wrong.extend(edges_of_pages(&pages));
    let is_foreign = |name: &str| !CORE_MAY_USE.split_whitespace().any(|allowed| allowed == name);
    wrong.extend(forbidden("rakwire", &dependencies(shell, "rakwire", ALL)?, is_foreign));
    let rules: [(&str, &[&str], &[&str]); 6] = [
        ("rakwire-relay", ALL, &RELAY_MUST_NOT_USE),
        ("rakwire-native", ALL, &NATIVE_MUST_NOT_USE),
        ("rakwire-native", &[], &NATIVE_MAY_USE_BY_FEATURE),
        ("rakwire-extras", ALL, &NATIVE_MUST_NOT_USE),
        ("rakwire-embassy", ALL, &EMBASSY_MUST_NOT_USE),
        ("rakwire-wasm", &["--all-features", "--target", WASM], &WASM_MUST_NOT_USE),
    ];
    for (package, features, unwanted) in rules {
        let is_unwanted = |name: &str| unwanted.iter().any(|beginning| name.starts_with(beginning));
        wrong.extend(forbidden(package, &dependencies(shell, package, features)?, is_unwanted));
    }
    let native = tree(shell, "rakwire-native", "normal", &[])?.len();
    if native > NATIVE_MOST_CRATES {
        wrong.push(format!(
            "rakwire-native depends on {native} crates by default, more than {NATIVE_MOST_CRATES}"
        ));
    }
    if !wrong.is_empty() {
        bail!("dependencies differ from ARCHITECTURE.md:\n  {}", wrong.join("\n  "));
    }
    shell.print(format_args!(
        "{} crates match the code map, and rakwire-native depends on {native} by default",
        OURS.len()
    ));
    Ok(())
}

/// Returns the differences between the crates in the output of `cargo metadata` and a table of permitted dependencies.
fn against(table: &[(&str, &[&str])], metadata: &Value) -> Vec<String> {
    let packages = metadata["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let has = |name: &str| packages.iter().any(|package| package["name"] == name);
    let mut wrong = Vec::new();
    for package in packages {
        let name = package["name"].as_str().unwrap_or_default();
        let Some((_, allowed)) = table.iter().find(|(crate_name, _)| *crate_name == name) else {
            wrong.push(format!("{name} is not in the table"));
            continue;
        };
        let used =
            package["dependencies"].as_array().into_iter().flatten().filter(|used| used["kind"] != "dev");
        let names = used.filter_map(|used| used["name"].as_str());
        let unwanted = names.filter(|used| has(used) && !allowed.contains(used));
        wrong.extend(unwanted.map(|used| format!("{name} must not depend on {used}")));
    }
    let gone = table.iter().map(|(name, _)| *name).filter(|name| !has(name));
    wrong.extend(gone.map(|name| format!("{name} does not exist")));
    wrong
}

/// Returns the packages of this repository that the pages must not use.
fn edges_of_pages(manifest: &Value) -> Vec<String> {
    let used =
        manifest["dependencies"].as_object().into_iter().flatten().filter_map(|(_, source)| source.as_str());
    let ours = used.filter(|source| source.starts_with("file:") && !WEB_MAY_USE.contains(source));
    ours.map(|source| format!("the pages must not depend on {source}")).collect()
}

fn forbidden(package: &str, all: &BTreeSet<String>, is_wrong: impl Fn(&str) -> bool) -> Vec<String> {
    let wrong = all.iter().filter(|name| is_wrong(name));
    wrong.map(|name| format!("{package} must not depend on {name}")).collect()
}

/// Returns the dependencies that are linked into a package, without macros, which run only during compilation.
fn dependencies(shell: &Shell, package: &str, more: &[&str]) -> Result<BTreeSet<String>> {
    tree(shell, package, "normal,no-proc-macro", more)
}

/// Returns the dependencies of a package along these kinds of edges, without the package itself.
fn tree(shell: &Shell, package: &str, edges: &str, more: &[&str]) -> Result<BTreeSet<String>> {
    let args = ["tree", "--package", package, "--edges", edges, "--prefix", "none"];
    let output = shell.cmd("cargo", args.into_iter().chain(more.iter().copied())).output()?;
    let mut names = parse_tree(&output.stdout);
    if !output.status.success() || !names.remove(package) {
        bail!("`cargo tree` failed for the dependencies of {package}");
    }
    Ok(names)
}

/// Returns the names in the lines `NAME vVERSION …` of `cargo tree --prefix none`.
fn parse_tree(printed: &str) -> BTreeSet<String> {
    printed.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_must_match_the_table_of_allowed_dependencies() {
        let metadata = serde_json::json!({ "packages": [
            { "name": "core", "dependencies": [{ "name": "libm", "kind": null }, { "name": "relay", "kind": "dev" }] },
            { "name": "relay", "dependencies": [{ "name": "core", "kind": null }] },
            { "name": "new", "dependencies": [] },
        ] });
        assert_eq!(
            against(&[("core", &[]), ("relay", &[]), ("gone", &[])], &metadata),
            ["relay must not depend on core", "new is not in the table", "gone does not exist"]
        );
        assert!(against(&[("core", &[]), ("relay", &["core"]), ("new", &[])], &metadata).is_empty());
    }

    #[test]
    fn forbidden_dependencies_of_pages_and_crates_are_reported() {
        let manifest = serde_json::json!({ "dependencies": { "a": "^1.0.0", "b": "file:../wasm", "c": "file:../core" } });
        assert_eq!(edges_of_pages(&manifest), ["the pages must not depend on file:../core"]);
        let names =
            parse_tree("rakwire v0.1.0 (/x/core)\nheapless v0.9.3\ntokio-util v0.7.0\nheapless v0.9.3 (*)\n");
        let wrong = forbidden("rakwire", &names, |name| name.starts_with("tokio"));
        assert_eq!(wrong, ["rakwire must not depend on tokio-util"]);
        assert_eq!(names.len(), 3);
    }
}
