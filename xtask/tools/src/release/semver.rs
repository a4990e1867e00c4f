//! Checks the public API for changes that break semantic versioning, compared with the last release.

use anyhow::{Result, bail};

use crate::package::{self, Published};
use xtask::setup::Need;
use xtask::shell::Shell;
use xtask::tasks;

const NOTHING_TO_COMPARE: &str = "NOT COMPARED: there is no tag of a release, so there is no interface to compare with; \
     `cargo xtask release --dry-run --baseline REV` compares with a revision";

/// The stage of `cargo xtask ci`. Installs the tool only after the first release, because it takes minutes to build.
pub(crate) fn stage(shell: &Shell) -> Result<()> {
    let packages = package::published(shell)?;
    let compared = check(shell, &packages, None)?;
    shell.print(compared);
    Ok(())
}

/// Compares the libraries with a revision, by default the last release, and describes the result.
pub(super) fn check(shell: &Shell, packages: &[Published], baseline: Option<&str>) -> Result<String> {
    let output = shell.cmd("git", ["tag", "--list", "v*", "--merged", "HEAD"]).output()?;
    if !output.status.success() {
        bail!("`git tag` failed");
    }
    let Some(baseline) = baseline.or_else(|| last(output.stdout.lines())) else {
        return Ok(NOTHING_TO_COMPARE.to_owned());
    };
    tasks::set_up(shell, &[Need::CargoSemverChecks])?;
    let libraries = packages.iter().filter(|package| package.has_library());
    let names = libraries.flat_map(|package| ["--package", package.name.as_str()]);
    let args = ["semver-checks", "check-release", "--all-features", "--baseline-rev", baseline];
    shell.cmd("cargo", args.into_iter().chain(names)).run()?;
    Ok(format!("the public API has no change since {baseline} that the version does not permit"))
}

/// Returns the tag of the highest version.
fn last<'t>(tags: impl Iterator<Item = &'t str>) -> Option<&'t str> {
    tags.filter_map(|tag| Some((parse(tag)?, tag))).max().map(|(_, tag)| tag)
}

fn parse(tag: &str) -> Option<[u64; 3]> {
    let numbers: Vec<u64> =
        tag.strip_prefix('v')?.split('.').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    numbers.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_tag_is_that_of_the_highest_version() {
        assert_eq!(
            last(["v0.9.0", "v0.10.1", "v0.10", "version", "v1.0.0-rc1"].into_iter()),
            Some("v0.10.1")
        );
        assert_eq!(last(["checkpoint", "vfs"].into_iter()), None);
    }
}
