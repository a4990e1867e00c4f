//! Checks of the dependencies between crates.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::artifacts;
use crate::shell::Shell;
use crate::targets::WASM;

/// All crates that the core may depend on with any features: small ones that need no operating system. Those of the
/// second line are for defmt, and those after it for the cryptography of secure connections.
const CORE_MAY_USE: &str = "
    adler2 byteorder hash32 heapless libm miniz_oxide rand_core rand_pcg siphasher stable_deref_trait
    bitflags defmt thiserror
    aead base64ct blake2 block-buffer cfg-if chacha20 chacha20poly1305 cipher cmov cpufeatures crypto-common ctutils
    curve25519-dalek digest hmac hybrid-array inout poly1305 subtle typenum universal-hash x25519-dalek zeroize
";

/// Prefixes of crates that one side's programs must not depend on.
const RELAY_MUST_NOT_USE: [&str; 5] =
    ["embassy", "rakwire-cli", "rakwire-embassy", "rakwire-native", "rakwire-wasm"];
/// Crates for programs only: users of the libraries should not have to build them.
const NATIVE_MUST_NOT_USE: [&str; 6] =
    ["clap", "hdrhistogram", "indicatif", "rakwire-cli", "serde", "tracing-subscriber"];
/// Crates that the library may use for optional features only.
const NATIVE_MAY_USE_BY_FEATURE: [&str; 5] = ["bytes", "metrics", "rand_pcg", "tracing", "x25519-dalek"];
/// Maximum number of crates compiled for the library without features, including macros.
const NATIVE_MOST_CRATES: usize = 35;
const WASM_MUST_NOT_USE: [&str; 4] = ["tokio", "mio", "quinn", "rakwire-native"];
const EMBASSY_MUST_NOT_USE: [&str; 5] = ["tokio", "mio", "quinn", "getrandom", "rakwire-native"];

/// The dependencies between our crates, as in the code map of ARCHITECTURE.md. Tests may use others too.
const OURS: [(&str, &[&str]); 20] = [
    ("rakwire", &["rakwire-derive"]),
    ("rakwire-derive", &[]),
    ("snowfight", &["rakwire"]),
    ("snowfight-replication", &["rakwire", "rakwire-plugins", "snowfight"]),
    (
        "snowfight-server",
        &[
            "rakwire",
            "rakwire-extras",
            "rakwire-native",
            "rakwire-plugins",
            "snowfight",
            "snowfight-replication",
        ],
    ),
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
    edges_among_ours(shell)?;
    edges_of_pages(&shell.read("web/package.json")?)?;
    let core = dependencies(shell, "rakwire", ALL)?;
    report(shell, "rakwire", &core, &outside(&core, CORE_MAY_USE))?;
    let rules: [(&str, &[&str], &[&str]); 6] = [
        ("rakwire-relay", ALL, &RELAY_MUST_NOT_USE),
        ("rakwire-native", ALL, &NATIVE_MUST_NOT_USE),
        ("rakwire-native", &[], &NATIVE_MAY_USE_BY_FEATURE),
        ("rakwire-extras", ALL, &NATIVE_MUST_NOT_USE),
        ("rakwire-embassy", ALL, &EMBASSY_MUST_NOT_USE),
        ("rakwire-wasm", &["--all-features", "--target", WASM], &WASM_MUST_NOT_USE),
    ];
    for (package, features, unwanted) in rules {
        let found = dependencies(shell, package, features)?;
        report(shell, package, &found, &beginning_with(&found, unwanted))?;
    }
    bound(shell, "rakwire-native", &tree(shell, "rakwire-native", "normal", &[])?, NATIVE_MOST_CRATES)
}

fn edges_among_ours(shell: &Shell) -> Result<()> {
    let wrong = against(&OURS, &artifacts::metadata(shell)?);
    if !wrong.is_empty() {
        bail!("the crates differ from the code map of ARCHITECTURE.md:\n  {}", wrong.join("\n  "));
    }
    shell.print(format_args!("{} crates match the code map", OURS.len()));
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

fn edges_of_pages(manifest: &str) -> Result<()> {
    let package: Value = serde_json::from_str(manifest).context("web/package.json cannot be read")?;
    let used = package.get("dependencies").and_then(Value::as_object);
    let used = used.context("web/package.json has no dependencies")?;
    let ours = used.values().filter_map(Value::as_str).filter(|source| source.starts_with("file:"));
    match ours.into_iter().find(|source| !WEB_MAY_USE.contains(source)) {
        Some(source) => bail!("the pages must not depend on {source}"),
        None => Ok(()),
    }
}

fn report(shell: &Shell, package: &str, all: &BTreeSet<String>, unwanted: &BTreeSet<&str>) -> Result<()> {
    if !unwanted.is_empty() {
        let names: Vec<_> = unwanted.iter().copied().collect();
        bail!("{package} must not depend on {}", names.join(", "));
    }
    shell.print(format_args!("{package}: {} dependencies, none forbidden", all.len()));
    Ok(())
}

/// Checks that at most `most` crates are compiled for a package.
fn bound(shell: &Shell, package: &str, all: &BTreeSet<String>, most: usize) -> Result<()> {
    if all.len() > most {
        bail!("{package} depends on {} crates by default, more than {most}", all.len());
    }
    shell.print(format_args!("{package}: depends on {} crates by default, at most {most}", all.len()));
    Ok(())
}

/// Returns the dependencies of a package that end up in its build, without macros, which run only during compilation.
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

fn outside<'a>(names: &'a BTreeSet<String>, allowed: &str) -> BTreeSet<&'a str> {
    let is_allowed = |name: &&str| allowed.split_whitespace().any(|allowed| allowed == *name);
    names.iter().map(String::as_str).filter(|name| !is_allowed(name)).collect()
}

fn beginning_with<'a>(names: &'a BTreeSet<String>, beginnings: &[&str]) -> BTreeSet<&'a str> {
    let unwanted = |name: &&str| beginnings.iter().any(|beginning| name.starts_with(beginning));
    names.iter().map(String::as_str).filter(unwanted).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: &str = "\
rakwire v0.1.0 (/somewhere/core)
heapless v0.9.3
hash32 v0.3.1
byteorder v1.5.0
tokio-util v0.7.0
heapless v0.9.3 (*)
";

    #[test]
    fn crates_must_match_the_table() {
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
    fn pages_may_use_packages_but_no_crates() {
        let manifest =
            |source: &str| format!("{{\"dependencies\": {{\"a\": \"^1.0.0\", \"b\": \"{source}\"}}}}");
        assert!(edges_of_pages(&manifest("file:../wasm")).is_ok());
        let error = edges_of_pages(&manifest("file:../core")).unwrap_err();
        assert_eq!(error.to_string(), "the pages must not depend on file:../core");
    }

    #[test]
    fn a_dependency_tree_is_parsed_as_names() {
        let names = parse_tree(TREE);
        assert_eq!(
            names.iter().collect::<Vec<_>>(),
            ["byteorder", "hash32", "heapless", "rakwire", "tokio-util"]
        );
    }

    #[test]
    fn forbidden_dependencies_are_found() {
        let mut names = parse_tree(TREE);
        names.remove("rakwire");
        assert_eq!(outside(&names, CORE_MAY_USE).into_iter().collect::<Vec<_>>(), ["tokio-util"]);
        assert_eq!(
            beginning_with(&names, &WASM_MUST_NOT_USE).into_iter().collect::<Vec<_>>(),
            ["tokio-util"]
        );
        names.remove("tokio-util");
        assert!(outside(&names, CORE_MAY_USE).is_empty());
        assert!(beginning_with(&names, &WASM_MUST_NOT_USE).is_empty());
    }

    #[test]
    fn a_forbidden_dependency_is_named_in_the_error() {
        let names = parse_tree(TREE);
        let shell = Shell::new().unwrap();
        let error = report(&shell, "rakwire", &names, &BTreeSet::from(["tokio-util"])).unwrap_err();
        assert_eq!(error.to_string(), "rakwire must not depend on tokio-util");
    }

    #[test]
    fn more_crates_than_the_limit_are_an_error() {
        let (shell, names) = (Shell::new().unwrap(), parse_tree(TREE));
        assert!(bound(&shell, "rakwire", &names, 5).is_ok());
        let error = bound(&shell, "rakwire", &names, 4).unwrap_err();
        assert_eq!(error.to_string(), "rakwire depends on 5 crates by default, more than 4");
    }
}
