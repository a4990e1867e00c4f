//! The files of packages, as cargo writes them.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use flate2::read::GzDecoder;
use tar::Archive;

use super::manifest::Published;
use xtask::artifacts;
use xtask::shell::Shell;

/// Whether packages may hold what is not committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tree {
    /// As it is: while a change is being made.
    Any,
    /// Committed: for a release.
    Committed,
}

/// Writes the file of every package.
pub(super) fn pack(shell: &Shell, packages: &[Published], tree: Tree) -> Result<()> {
    let names = packages.iter().flat_map(|package| ["--package", package.name.as_str()]);
    let dirty = (tree == Tree::Any).then_some("--allow-dirty");
    let args = ["package", "--quiet", "--no-verify"].into_iter().chain(dirty).chain(names);
    shell.cmd("cargo", args).run()
}

/// The file that cargo has packed.
pub(super) fn file(shell: &Shell, package: &Published) -> Result<PathBuf> {
    let name = format!("{}.crate", package.folder_name());
    let file = artifacts::target_dir(shell)?.join("package").join(name);
    if !file.is_file() {
        bail!("cargo packed no {}", file.display());
    }
    Ok(file)
}

/// Unpacks the file of a package into a folder, which gets a folder for it.
pub(super) fn unpack(shell: &Shell, package: &Published, into: &Path) -> Result<()> {
    let path = file(shell, package)?;
    let file = File::open(&path).with_context(|| format!("{} cannot be read", path.display()))?;
    let mut archive = Archive::new(GzDecoder::new(file));
    // Cargo gives all files one date, by which a changed one would count as built.
    archive.set_preserve_mtime(false);
    archive.unpack(into).with_context(|| format!("{} cannot be unpacked", path.display()))
}
