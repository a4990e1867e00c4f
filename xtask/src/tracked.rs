//! The files of the repository, as git knows them.

use anyhow::{Result, bail};

use crate::shell::Shell;

/// All files that are committed or could be, by their paths in the repository, sorted.
pub fn files(shell: &Shell) -> Result<Vec<String>> {
    let args = ["ls-files", "--cached", "--others", "--exclude-standard", "--deduplicate"];
    let output = shell.cmd("git", args).output()?;
    if !output.status.success() {
        bail!("`git ls-files` cannot tell the files of the repository");
    }
    let paths = output.stdout.lines().filter(|path| shell.path(path).is_file());
    let mut paths: Vec<String> = paths.map(str::to_owned).collect();
    paths.sort();
    Ok(paths)
}
