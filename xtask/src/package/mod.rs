//! Packages for the registry: what their manifests say, what is in them, and that they work without the repository.

mod contents;
mod installs;
mod manifest;
mod unpacked;

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use flate2::read::GzDecoder;
use tar::Archive;

pub(crate) use self::installs::Install;
pub(crate) use self::manifest::{Published, published};
pub(crate) use self::unpacked::test;
use crate::artifacts;
use crate::shell::Shell;

/// Whether packages may hold what is not committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tree {
    /// As it is: while a change is being made.
    Any,
    /// Committed: for a release.
    Committed,
}

/// The stage of `cargo xtask ci`: packs every published crate and checks the packages.
pub(crate) fn stage(shell: &Shell) -> Result<()> {
    let packages = published(shell)?;
    let installs = packed(shell, &packages, Tree::Any)?;
    unpacked::check(shell, &packages, &installs)
}

/// Packs the crates, checks their manifests and contents, and returns how the documents say to install them.
pub(crate) fn packed(shell: &Shell, packages: &[Published], tree: Tree) -> Result<Vec<Install>> {
    manifest::check(packages)?;
    let installs = installs::collect(shell, packages)?;
    pack(shell, packages, tree)?;
    for package in packages {
        let summary = contents::check(shell, package)?;
        shell.print(format_args!("{}: {summary}", package.name));
    }
    Ok(installs)
}

/// Writes the file of every package.
fn pack(shell: &Shell, packages: &[Published], tree: Tree) -> Result<()> {
    let names = packages.iter().flat_map(|package| ["--package", package.name.as_str()]);
    let dirty = (tree == Tree::Any).then_some("--allow-dirty");
    let args = ["package", "--quiet", "--no-verify"].into_iter().chain(dirty).chain(names);
    shell.cmd("cargo", args).run()
}

/// The file that cargo has packed.
pub(crate) fn file(shell: &Shell, package: &Published) -> Result<PathBuf> {
    let name = format!("{}.crate", package.folder_name());
    let file = artifacts::target_dir(shell)?.join("package").join(name);
    if !file.is_file() {
        bail!("cargo packed no {}", file.display());
    }
    Ok(file)
}

/// Unpacks the file of a package into a folder, which gets a folder for it.
fn unpack(shell: &Shell, package: &Published, into: &Path) -> Result<()> {
    let path = file(shell, package)?;
    let file = File::open(&path).with_context(|| format!("{} cannot be read", path.display()))?;
    let mut archive = Archive::new(GzDecoder::new(file));
    // Cargo gives all files one date, by which a changed one would count as built.
    archive.set_preserve_mtime(false);
    archive.unpack(into).with_context(|| format!("{} cannot be unpacked", path.display()))
}
