//! Prepares a release: runs checks, builds packages and files for users without Rust, and prints the upload commands.

mod checks;
pub(crate) mod files;
pub(crate) mod semver;

use anyhow::{Result, bail};
use clap::Args;

use self::checks::Workspace;
use crate::package;
use xtask::shell::Shell;
use xtask::tasks;

/// The options of a release.
#[derive(Args)]
pub(crate) struct Options {
    /// Only warn if the repository has no public address yet, and the version no date
    #[arg(long)]
    dry_run: bool,
    /// Compare the public API of the libraries with this revision instead of the last release tag
    #[arg(long, value_name = "REV")]
    baseline: Option<String>,
}

/// `cargo xtask release`.
pub(crate) fn command(shell: &Shell, options: &Options) -> Result<()> {
    let workspace = Workspace::read(shell)?;
    workspace.check_npm(|file| shell.read(file))?;
    let version = workspace.version.as_str();
    let changelog = shell.read("CHANGELOG.md")?;
    let date = checks::date(&changelog, version)?;
    let mut not_yet = Vec::new();
    if workspace.is_placeholder() {
        not_yet.push(format!(
            "{} is a placeholder: set the repository in Cargo.toml and the manifests of the npm packages",
            workspace.repository
        ));
    }
    if date.is_none() {
        not_yet.push(format!("the section {version} of CHANGELOG.md has no date: set today's date"));
    }
    if !not_yet.is_empty() && !options.dry_run {
        bail!("{}", not_yet.join("\n"));
    }
    checks::clean_tree(shell)?;
    shell.note(format_args!("Releasing {version} of {}", date.unwrap_or("today")));

    let packages = package::published(shell)?;
    package::test(shell, &packages)?;
    let compared = semver::check(shell, &packages, options.baseline.as_deref())?;
    tasks::set_up(shell, &files::NEEDS)?;
    files::make(shell, version)?;

    shell.print(compared);
    for line in uploads(version) {
        shell.print(line);
    }
    for reason in not_yet {
        shell.print(format_args!("not yet: {reason}"));
    }
    Ok(())
}

/// Returns the upload commands in their order, the tag last. Cargo uploads each crate after its dependencies.
fn uploads(version: &str) -> [String; 4] {
    let npm = |name: &str| format!("npm publish {}/{name}-{version}.tgz", files::FOLDER);
    [
        "cargo publish --workspace".to_owned(),
        npm("rakwire"),
        npm("create-rakwire"),
        format!(
            "git tag --annotate v{version} --message \"rakwire {version}\" && git push origin v{version}"
        ),
    ]
}
