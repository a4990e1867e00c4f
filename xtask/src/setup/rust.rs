//! The Rust toolchain's parts: components and targets.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::done::Done;
use crate::shell::{CROSS_TOOLCHAIN, Shell};
use crate::targets::STATIC;

const FALLBACK: &str = ".ci/cross-toolchain";
const DOWNLOAD: Duration = Duration::from_secs(300);

pub(super) fn components(shell: &Shell) -> Result<Done> {
    let mut absent = Vec::new();
    for (command, component) in [("fmt", "rustfmt"), ("clippy", "clippy")] {
        if shell.cmd("cargo", [command, "--version"]).probe()?.is_none() {
            absent.push(component);
        }
    }
    if absent.is_empty() {
        return Ok(Done::Present("rustfmt and clippy are there".to_owned()));
    }
    let args = ["component", "add"].into_iter().chain(absent.iter().copied());
    shell.cmd("rustup", args).limit(DOWNLOAD).run()?;
    Ok(Done::Installed(absent.join(" and ")))
}

/// The published packages of the workspace, each with the oldest Rust that its manifest promises, as rustup names it.
pub fn promised_rust(shell: &Shell) -> Result<Vec<(String, String)>> {
    let output = shell.cmd("cargo", ["metadata", "--no-deps", "--format-version", "1"]).output()?;
    let metadata: Value = serde_json::from_str(&output.stdout).context("`cargo metadata` printed no JSON")?;
    let promised = parse_promised(&metadata).context("`cargo metadata` names no packages")?;
    if promised.is_empty() { bail!("no package is published with a rust-version") } else { Ok(promised) }
}

/// A list of registries, and be it empty, stands for a package that is not published to all.
fn parse_promised(metadata: &Value) -> Option<Vec<(String, String)>> {
    let packages = metadata.get("packages")?.as_array()?.iter();
    let published = packages.filter(|package| package.get("publish").is_none_or(Value::is_null));
    let promised = published.filter_map(|package| {
        let version = package.get("rust_version")?.as_str()?;
        let version =
            if version.matches('.').count() == 1 { format!("{version}.0") } else { version.to_owned() };
        Some((package.get("name")?.as_str()?.to_owned(), version))
    });
    Some(promised.collect())
}

/// The versions of [`promised_rust`], each once.
fn promised_versions(shell: &Shell) -> Result<BTreeSet<String>> {
    Ok(promised_rust(shell)?.into_iter().map(|(_, version)| version).collect())
}

/// Makes the toolchains of [`promised_rust`] available.
pub(super) fn oldest(shell: &Shell) -> Result<Done> {
    let versions = promised_versions(shell)?;
    let mut absent = Vec::new();
    for version in &versions {
        let rustc = shell.cmd("rustc", ["--version"]).with(|command| {
            command.env("RUSTUP_TOOLCHAIN", version).env("RUSTUP_AUTO_INSTALL", "0");
        });
        if rustc.probe()?.is_none() {
            absent.push(version.as_str());
        }
    }
    if absent.is_empty() {
        let versions: Vec<&str> = versions.iter().map(String::as_str).collect();
        return Ok(Done::Present(format!("Rust {} is there", versions.join(" and "))));
    }
    let args = ["toolchain", "install"].into_iter().chain(absent.iter().copied());
    shell.cmd("rustup", args.chain(["--profile", "minimal"])).limit(DOWNLOAD).run()?;
    Ok(Done::Installed(format!("Rust {}", absent.join(" and "))))
}

pub(super) fn oldest_by_hand(shell: &Shell) -> String {
    let versions = promised_versions(shell).unwrap_or_default();
    let versions: Vec<&str> = versions.iter().map(String::as_str).collect();
    format!("`rustup toolchain install {} --profile minimal`", versions.join(" "))
}

/// The compiler that has Miri; no stable one does.
pub const MIRI_TOOLCHAIN: &str = "nightly";
const MIRI_INSTALL: [&str; 9] = [
    "toolchain",
    "install",
    MIRI_TOOLCHAIN,
    "--profile",
    "minimal",
    "--component",
    "miri",
    "--component",
    "rust-src",
];

pub(super) fn miri(shell: &Shell) -> Result<Done> {
    let miri = || {
        let version = shell.cmd("cargo", ["miri", "--version"]).with(|command| {
            command.env("RUSTUP_TOOLCHAIN", MIRI_TOOLCHAIN).env("RUSTUP_AUTO_INSTALL", "0");
        });
        version.probe()
    };
    if let Some(version) = miri()? {
        return Ok(Done::Present(format!("{} is there", version.trim())));
    }
    shell.cmd("rustup", MIRI_INSTALL).limit(DOWNLOAD).run()?;
    let version = miri()?.context("rustup installed Miri, but it does not run")?;
    Ok(Done::Installed(version.trim().to_owned()))
}

pub(super) fn miri_by_hand() -> String {
    format!("`rustup {}`", MIRI_INSTALL.join(" "))
}

/// Makes a target available: as the toolchain has it, by rustup, or by the linked toolchain.
fn target(shell: &Shell, target: &'static str) -> Result<Done> {
    if has_target(shell, None, target)? {
        return Ok(Done::Present(format!("{target} is there")));
    }
    if has_target(shell, Some(CROSS_TOOLCHAIN), target)? {
        shell.use_cross_toolchain(target);
        return Ok(Done::Present(format!("{target} is in the linked toolchain `{CROSS_TOOLCHAIN}`")));
    }
    let added = shell.cmd("rustup", ["target", "add", target]).limit(DOWNLOAD).run();
    let Err(error) = added else {
        return Ok(Done::Installed(target.to_owned()));
    };
    if target == STATIC {
        return Err(error.context("static programs need the standard library that rustup fetches"));
    }
    shell.note(format_args!("rustup cannot fetch {target} ({error:#})."));
    shell.note(format_args!(
        "Building it from the distribution's own Rust instead, as the toolchain `{CROSS_TOOLCHAIN}`."
    ));
    shell.cmd("bash", [FALLBACK, target]).run()?;
    if !has_target(shell, Some(CROSS_TOOLCHAIN), target)? {
        bail!("{FALLBACK} ended well, but the toolchain `{CROSS_TOOLCHAIN}` has no {target}");
    }
    shell.use_cross_toolchain(target);
    Ok(Done::Installed(format!("{target}, in the linked toolchain `{CROSS_TOOLCHAIN}`")))
}

/// Makes several targets available.
pub(super) fn targets(shell: &Shell, targets: &[&'static str]) -> Result<Done> {
    let mut installed = Vec::new();
    for name in targets {
        if let Done::Installed(what) = target(shell, name)? {
            installed.push(what);
        }
    }
    match installed.is_empty() {
        true => Ok(Done::Present(format!("there are {}", targets.join(", ")))),
        false => Ok(Done::Installed(installed.join(", "))),
    }
}

pub(super) fn by_hand(targets: &[&str]) -> String {
    let target = targets.join(" ");
    if targets == [STATIC] {
        return format!("`rustup target add {target}`");
    }
    format!("`rustup target add {target}`, or on Debian `bash {FALLBACK} {target}`")
}

fn has_target(shell: &Shell, toolchain: Option<&str>, target: &str) -> Result<bool> {
    let rustc = shell.cmd("rustc", ["--print", "sysroot"]).with(|command| {
        if let Some(toolchain) = toolchain {
            command.env("RUSTUP_TOOLCHAIN", toolchain);
        }
    });
    let sysroot = rustc.probe()?;
    Ok(sysroot.is_some_and(|sysroot| {
        Path::new(sysroot.trim()).join("lib/rustlib").join(target).join("lib").is_dir()
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_packages_and_their_versions_are_read() {
        let metadata = serde_json::json!({"packages": [
            {"name": "a", "publish": null, "rust_version": "1.88"},
            {"name": "b", "publish": [], "rust_version": "1.70"},
            {"name": "c", "publish": null, "rust_version": "1.91.1"},
        ]});
        let expected = [("a", "1.88.0"), ("c", "1.91.1")];
        let expected = expected.map(|(name, version)| (name.to_owned(), version.to_owned()));
        assert_eq!(parse_promised(&metadata).unwrap(), expected);
        assert!(parse_promised(&serde_json::json!({})).is_none());
    }
}
