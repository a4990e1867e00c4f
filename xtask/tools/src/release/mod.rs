//! A release, all but the upload: checks, packages, files for those without Rust, and the commands that a maintainer then runs.

mod changelog;
mod checks;
pub(crate) mod files;
pub(crate) mod semver;

use anyhow::{Result, bail};
use clap::Args;

use crate::package::{self, Published, Tree};
use xtask::shell::Shell;
use xtask::tasks;

/// How strict to be.
#[derive(Args)]
pub(crate) struct Options {
    /// Only warn that the repository has no public address yet, and the version no date.
    #[arg(long)]
    dry_run: bool,
    /// Compare the interfaces of the libraries with this revision, not with the last tag of a release.
    #[arg(long, value_name = "REV")]
    baseline: Option<String>,
}

/// `cargo xtask release`.
pub(crate) fn command(shell: &Shell, options: &Options) -> Result<()> {
    let packages = package::published(shell)?;
    let version = checks::version(&packages)?;
    let repository = checks::repository(&packages)?;
    for manifest in checks::NPM_MANIFESTS {
        checks::npm(manifest, &shell.read(manifest)?, version, &repository)?;
    }
    checks::npm_lock(&shell.read("wasm/package-lock.json")?, version)?;
    checks::template(&shell.read(checks::TEMPLATE_MANIFEST)?, version)?;
    let changelog = shell.read("CHANGELOG.md")?;
    let date = changelog::date(&changelog, version)?;
    if repository.is_placeholder() && !options.dry_run {
        bail!(
            "{} is a placeholder: set the repository in Cargo.toml and {}",
            repository.0,
            checks::NPM_MANIFESTS.join(" and ")
        );
    }
    if date.is_none() && !options.dry_run {
        bail!("the section {version} of CHANGELOG.md has no date: write that of today");
    }
    checks::clean_tree(shell)?;
    shell.note(format_args!("Releasing {version} of {}", date.unwrap_or("today")));

    let installs = package::packed(shell, &packages, Tree::Committed)?;
    package::test(shell, &packages, &installs)?;
    let compared = semver::check(shell, &packages, options.baseline.as_deref())?;
    tasks::set_up(shell, &files::NEEDS)?;
    files::make(shell, version)?;

    shell.print(compared);
    for line in uploads(&packages, version) {
        shell.print(line);
    }
    if repository.is_placeholder() {
        shell.print(format_args!("not yet: {} is a placeholder, which a release refuses", repository.0));
    }
    if date.is_none() {
        shell.print(format_args!(
            "not yet: the section {version} of CHANGELOG.md has no date, without which a release refuses"
        ));
    }
    Ok(())
}

/// The commands that upload everything, in their order: each crate after those that it needs, the tag last.
fn uploads(packages: &[Published], version: &str) -> Vec<String> {
    let crates = packages.iter().map(|package| format!("cargo publish --package {}", package.name));
    let npm = ["rakwire", "create-rakwire"]
        .map(|name| format!("npm publish {}/{name}-{version}.tgz", files::FOLDER));
    let tag = format!(
        "git tag --annotate v{version} --message \"rakwire {version}\" && git push origin v{version}"
    );
    crates.chain(npm).chain([tag]).collect()
}
