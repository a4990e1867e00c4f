//! The comparison programs with libraries other than RakNet: one in Rust with its own workspace, and one in C++.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::shell::Shell;
use crate::workspaces;

/// The workspace of the program in Rust.
pub const FOLDER: &str = "bench/fields";
/// The crate that contains the source of GameNetworkingSockets.
const GNS: &str = "game-networking-sockets-sys";

/// Builds the programs with optimisation.
pub fn build(shell: &Shell) -> Result<String> {
    workspaces::cargo(shell, FOLDER, &["build", "--release", "--locked"]).run()?;
    build_gns(shell)?;
    Ok(format!("in {}", workspaces::target_dir(FOLDER)))
}

fn build_gns(shell: &Shell) -> Result<()> {
    let source = format!("-DGNS={}", gns_source(shell)?.display());
    let folder = format!("{}/gns", workspaces::target_dir(FOLDER));
    let from = ["-S", "bench/fields/gns", "-B", &folder, "-DCMAKE_BUILD_TYPE=Release", &source];
    shell.cmd("cmake", from).run()?;
    shell.cmd("cmake", ["--build", &folder, "--target", "gns-peer", "--parallel", "2"]).run()
}

/// Returns the source folder of GameNetworkingSockets. Cargo downloads and verifies the package without building it.
fn gns_source(shell: &Shell) -> Result<PathBuf> {
    let args = ["metadata", "--all-features", "--format-version", "1", "--locked"];
    let output = workspaces::cargo(shell, FOLDER, &args).output()?;
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
