//! The oldest compiler that each manifest promises.

use anyhow::{Context, Result, bail};
use toml::Table;

use xtask::setup::promised_rust;
use xtask::shell::Shell;
use xtask::tracked;

/// Checks every published crate with the oldest compiler that its manifest promises. Cargo refuses where a dependency
/// promises only a later one.
pub(crate) fn stage(shell: &Shell) -> Result<()> {
    let silent = without_promise(shell)?;
    if !silent.is_empty() {
        bail!("these manifests name no rust-version:\n  {}", silent.join("\n  "));
    }
    for (package, version) in promised_rust(shell)? {
        // The core is built for boards without its default features.
        let bare = (package == "rakwire").then_some("--no-default-features");
        for features in [None, Some("--all-features"), bare] {
            let check = shell.cmd("cargo", ["check", "-p", &package].into_iter().chain(features));
            let check = check.with(|command| {
                command.env("RUSTUP_TOOLCHAIN", &version);
            });
            check.run()?;
        }
        shell.print(format_args!("{package} builds with Rust {version}"));
    }
    Ok(())
}

/// The manifests of packages that promise nothing.
fn without_promise(shell: &Shell) -> Result<Vec<String>> {
    let mut silent = Vec::new();
    for path in tracked::files(shell)?.into_iter().filter(|path| is_manifest(path)) {
        let manifest = shell.read(&path)?;
        if !promises(&manifest).with_context(|| format!("{path} cannot be read"))? {
            silent.push(path);
        }
    }
    Ok(silent)
}

fn is_manifest(path: &str) -> bool {
    path == "Cargo.toml" || path.ends_with("/Cargo.toml")
}

/// Whether a manifest names the oldest compiler of its package, or has none.
fn promises(manifest: &str) -> Result<bool> {
    let manifest: Table = manifest.parse()?;
    let package = manifest.get("package").and_then(|package| package.as_table());
    Ok(package.is_none_or(|package| package.contains_key("rust-version")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_without_a_promise_is_found() {
        assert!(promises("[workspace]\nmembers = []").unwrap());
        assert!(promises("[package]\nname = \"a\"\nrust-version = \"1.88\"").unwrap());
        assert!(promises("[package]\nrust-version.workspace = true").unwrap());
        assert!(!promises("[package]\nname = \"a\"\n[workspace.package]\nrust-version = \"1\"").unwrap());
        assert!(promises("no manifest").is_err());
    }

    #[test]
    fn manifests_are_told_by_their_names() {
        assert!(is_manifest("Cargo.toml") && is_manifest("core/Cargo.toml"));
        assert!(!is_manifest("core/NoCargo.toml") && !is_manifest("Cargo.lock"));
    }
}
