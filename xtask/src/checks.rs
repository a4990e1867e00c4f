//! Which crate may depend on which.

use std::collections::BTreeSet;

use anyhow::{Result, bail};

use crate::shell::Shell;
use crate::targets::WASM;

/// All that the core may pull in: small crates that need no operating system, whatever features are on.
const CORE_MAY_USE: [&str; 11] = [
    "adler2",
    "byteorder",
    "hash32",
    "heapless",
    "libm",
    "miniz_oxide",
    "rand_core",
    "rand_pcg",
    "siphasher",
    "stable_deref_trait",
    "thiserror",
];

/// The crates of a program's side that have no business on another one, as beginnings of names.
const RELAY_MUST_NOT_USE: [&str; 2] = ["embassy", "rakwire"];
/// What only programs need: whoever uses the library should not have to build it.
const NATIVE_MUST_NOT_USE: [&str; 6] =
    ["clap", "hdrhistogram", "indicatif", "rakwire-cli", "serde", "tracing-subscriber"];
const WASM_MUST_NOT_USE: [&str; 4] = ["tokio", "mio", "quinn", "rakwire-native"];
const EMBASSY_MUST_NOT_USE: [&str; 5] = ["tokio", "mio", "quinn", "getrandom", "rakwire-native"];

/// Checks the edges of the dependency graph that the architecture forbids.
pub(crate) fn edges(shell: &Shell) -> Result<()> {
    let core = dependencies(shell, "rakwire", &["--all-features"])?;
    report(shell, "rakwire", &core, &outside(&core, &CORE_MAY_USE))?;
    let relay = dependencies(shell, "rakwire-relay", &["--all-features"])?;
    report(shell, "rakwire-relay", &relay, &beginning_with(&relay, &RELAY_MUST_NOT_USE))?;
    let native = dependencies(shell, "rakwire-native", &["--all-features"])?;
    report(shell, "rakwire-native", &native, &beginning_with(&native, &NATIVE_MUST_NOT_USE))?;
    let embassy = dependencies(shell, "rakwire-embassy", &["--all-features"])?;
    report(shell, "rakwire-embassy", &embassy, &beginning_with(&embassy, &EMBASSY_MUST_NOT_USE))?;
    let wasm = dependencies(shell, "rakwire-wasm", &["--all-features", "--target", WASM])?;
    report(shell, "rakwire-wasm", &wasm, &beginning_with(&wasm, &WASM_MUST_NOT_USE))
}

fn report(shell: &Shell, package: &str, all: &BTreeSet<String>, unwanted: &BTreeSet<&str>) -> Result<()> {
    if !unwanted.is_empty() {
        let names: Vec<_> = unwanted.iter().copied().collect();
        bail!("{package} must not depend on {}", names.join(", "));
    }
    shell.print(format_args!("{package}: {} dependencies, none that it must not have", all.len()));
    Ok(())
}

/// The packages that end up in a build of this one, without itself and without macros that only run while compiling.
fn dependencies(shell: &Shell, package: &str, more: &[&str]) -> Result<BTreeSet<String>> {
    let args = ["tree", "--package", package, "--edges", "normal,no-proc-macro", "--prefix", "none"];
    let output = shell.cmd("cargo", args.into_iter().chain(more.iter().copied())).output()?;
    let mut names = parse_tree(&output.stdout);
    if !output.status.success() || !names.remove(package) {
        bail!("`cargo tree` cannot tell the dependencies of {package}");
    }
    Ok(names)
}

/// The names in the lines `NAME vVERSION …` of `cargo tree --prefix none`.
fn parse_tree(printed: &str) -> BTreeSet<String> {
    printed.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

fn outside<'a>(names: &'a BTreeSet<String>, allowed: &[&str]) -> BTreeSet<&'a str> {
    names.iter().map(String::as_str).filter(|name| !allowed.contains(name)).collect()
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
    fn a_tree_is_read_as_names() {
        let names = parse_tree(TREE);
        assert_eq!(
            names.iter().collect::<Vec<_>>(),
            ["byteorder", "hash32", "heapless", "rakwire", "tokio-util"]
        );
    }

    #[test]
    fn what_is_not_allowed_is_found() {
        let mut names = parse_tree(TREE);
        names.remove("rakwire");
        assert_eq!(outside(&names, &CORE_MAY_USE).into_iter().collect::<Vec<_>>(), ["tokio-util"]);
        assert_eq!(
            beginning_with(&names, &WASM_MUST_NOT_USE).into_iter().collect::<Vec<_>>(),
            ["tokio-util"]
        );
        names.remove("tokio-util");
        assert!(outside(&names, &CORE_MAY_USE).is_empty());
        assert!(beginning_with(&names, &WASM_MUST_NOT_USE).is_empty());
    }

    #[test]
    fn an_unwanted_edge_is_an_error_that_names_it() {
        let names = parse_tree(TREE);
        let shell = Shell::new().unwrap();
        let error = report(&shell, "rakwire", &names, &BTreeSet::from(["tokio-util"])).unwrap_err();
        assert_eq!(error.to_string(), "rakwire must not depend on tokio-util");
    }
}
