//! The comparison programs with libraries other than RakNet: one in Rust with its own workspace, and one in C++.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::process::Cmd;
use crate::shell::Shell;

const FOLDER: &str = "bench/fields";
const TARGET_DIR: &str = "target/fields";
/// The crate that contains the source of GameNetworkingSockets.
const GNS: &str = "game-networking-sockets-sys";

/// Builds the programs with optimisation.
pub fn build(shell: &Shell) -> Result<String> {
    cargo(shell, &["build", "--release", "--locked"]).run()?;
    build_gns(shell)?;
    Ok(format!("in {TARGET_DIR}"))
}

fn build_gns(shell: &Shell) -> Result<()> {
    let source = format!("-DGNS={}", gns_source(shell)?.display());
    let folder = format!("{TARGET_DIR}/gns");
    let from = ["-S", "bench/fields/gns", "-B", &folder, "-DCMAKE_BUILD_TYPE=Release", &source];
    shell.cmd("cmake", from).run()?;
    shell.cmd("cmake", ["--build", &folder, "--target", "gns-peer", "--parallel", "2"]).run()
}

/// Returns the source folder of GameNetworkingSockets. Cargo downloads and verifies the package without building it.
fn gns_source(shell: &Shell) -> Result<PathBuf> {
    let args = ["metadata", "--all-features", "--format-version", "1", "--locked"];
    let output = cargo(shell, &args).output()?;
    let metadata: Value =
        serde_json::from_str(&output.stdout).context("`cargo metadata` reports no packages")?;
    let packages = metadata["packages"].as_array().context("`cargo metadata` reports no packages")?;
    let package = packages.iter().find(|package| package["name"] == GNS);
    let manifest = package.and_then(|package| package["manifest_path"].as_str());
    let folder = manifest.and_then(|manifest| Path::new(manifest).parent());
    let source = folder.with_context(|| format!("{FOLDER} does not use {GNS}"))?;
    let source = source.join("thirdparty/GameNetworkingSockets");
    if source.is_dir() { Ok(source) } else { bail!("{GNS} has no {}", source.display()) }
}

/// Checks the formatting and the lints of the Rust program.
pub fn lints(shell: &Shell) -> Result<()> {
    cargo(shell, &["fmt", "--check"]).run()?;
    cargo(shell, &["clippy", "--release", "--locked", "--", "-D", "warnings"]).run()
}

fn cargo(shell: &Shell, args: &[&str]) -> Cmd {
    let target_dir = shell.path(TARGET_DIR);
    shell.cmd_in(FOLDER, "cargo", args.iter().copied()).with(|command| {
        command.env("CARGO_TARGET_DIR", target_dir);
    })
}
