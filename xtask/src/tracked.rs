//! The files of the repository according to git.

use anyhow::{Result, bail};

use crate::shell::Shell;

/// Returns all files that are committed or not ignored, by their paths in the repository, sorted.
pub fn files(shell: &Shell) -> Result<Vec<String>> {
    let args = ["ls-files", "--cached", "--others", "--exclude-standard", "--deduplicate"];
    let output = shell.cmd("git", args).output()?;
    if !output.status.success() {
        bail!("`git ls-files` failed to list the files of the repository");
    }
    let paths = output.stdout.lines().filter(|path| shell.path(path).is_file());
    let mut paths: Vec<String> = paths.map(str::to_owned).collect();
    paths.sort();
    Ok(paths)
}
