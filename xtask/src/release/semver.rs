//! Whether the public interface breaks what the version promises, compared with the last release.

use anyhow::{Result, bail};

use crate::package::Published;
use crate::setup::Need;
use crate::shell::Shell;
use crate::tasks;

/// Compares the libraries with the last release, and says what was done. Only a release does this: the tool takes
/// minutes to build.
pub(super) fn check(shell: &Shell, packages: &[Published]) -> Result<String> {
    let output = shell.cmd("git", ["tag", "--list", "v*", "--merged", "HEAD"]).output()?;
    if !output.status.success() {
        bail!("`git tag` failed");
    }
    let Some(tag) = last(output.stdout.lines()) else {
        return Ok("there is no tag of a release, so there is no interface to compare with".to_owned());
    };
    tasks::set_up(shell, &[Need::CargoSemverChecks])?;
    let libraries = packages.iter().filter(|package| package.has_library);
    let names = libraries.flat_map(|package| ["--package", package.name.as_str()]);
    let args = ["semver-checks", "check-release", "--all-features", "--baseline-rev", tag];
    shell.cmd("cargo", args.into_iter().chain(names)).run()?;
    Ok(format!("the interface is compatible with {tag} as far as the version promises"))
}

/// The tag of the highest version.
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
