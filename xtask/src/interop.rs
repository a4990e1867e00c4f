//! The tests with other RakNet implementations, and the page of their results.

use std::env;
use std::fs;

use anyhow::{Context, Result, bail};

use crate::artifacts::target_dir;
use crate::files;
use crate::shell::Shell;

const PAGE: &str = "docs/interop.md";
/// Rewrites the page instead of comparing it.
const UPDATE: &str = "UPDATE_INTEROP";

/// The stage of `cargo xtask ci`.
pub fn stage(shell: &Shell) -> Result<()> {
    let found = target_dir(shell)?.join("tmp/interop.md");
    // Remove the results of an earlier run.
    files::remove_file(&found)?;
    // Test within the whole workspace, so that nothing is rebuilt with fewer features.
    shell.cmd("cargo", ["test", "--workspace", "--test", "interop"]).run()?;
    let found = fs::read_to_string(&found)
        .with_context(|| format!("the tests did not produce {}", found.display()))?;
    if env::var_os(UPDATE).is_some() {
        return files::write(&shell.path(PAGE), found);
    }
    compare(&shell.read(PAGE)?, &found)?;
    shell.print(format_args!("{PAGE} matches the results"));
    Ok(())
}

/// Runs the tests with the one other RakNet that needs no further software.
pub fn smoke(shell: &Shell) -> Result<()> {
    let args = ["test", "--workspace", "--test", "interop", "--", "python", "--skip", "cpp"];
    shell.cmd("cargo", args).run()
}

fn compare(committed: &str, found: &str) -> Result<()> {
    if committed == found {
        return Ok(());
    }
    let differs = committed.lines().zip(found.lines()).find(|(old, new)| old != new);
    let where_to = differs.map_or_else(
        || "one of them is longer".to_owned(),
        |(old, new)| format!("first difference:\n  committed: {old}\n  found:     {new}"),
    );
    bail!("{PAGE} differs from the results, {where_to}\nset {UPDATE}=1 to rewrite it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_differing_page_is_an_error_that_shows_the_line() {
        compare("a\nb\n", "a\nb\n").unwrap();
        let error = compare("a\nb\n", "a\nc\n").unwrap_err().to_string();
        assert!(error.contains("committed: b\n  found:     c"), "{error}");
        assert!(compare("a\n", "a\nb\n").unwrap_err().to_string().contains("longer"));
    }
}
