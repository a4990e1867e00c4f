//! Packages for the registry: what their manifests say, what is in them, and that they work without the repository.

mod archive;
mod contents;
mod installs;
mod manifest;
mod readme;
mod unpacked;

use anyhow::Result;

pub(crate) use self::archive::Tree;
pub(crate) use self::installs::Install;
pub(crate) use self::manifest::{Published, published};
pub(crate) use self::unpacked::test;
use xtask::shell::Shell;

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
    archive::pack(shell, packages, tree)?;
    for package in packages {
        let summary = contents::check(shell, package)?;
        shell.print(format_args!("{}: {summary}", package.name));
    }
    Ok(installs)
}
