//! The smoke test of the demo: headless Chromium plays complete games, and its driver checks them.

use std::time::Duration;

use anyhow::{Result, bail};

use crate::files;
use crate::process::describe;
use crate::shell::Shell;

const DRIVER: &str = "web/tests/smoke.mjs";
const FOLDER: &str = "target/demo";
const LIMIT: Duration = Duration::from_secs(1_500);
/// The variants of a game: each protocol, and replication over RakNet.
pub const WAYS: [&str; 3] = ["game", "raknet", "replication"];

/// Lets pages use the demo at `url`, and saves screenshots. `mode` is `--look` for a page that watches bots, or `--ways=…`
/// for two pages that play against each other. Returns the driver's line of JSON; `metrics` is the address of the relay's
/// counters.
pub fn drive(shell: &Shell, url: &str, metrics: &str, mode: &str) -> Result<String> {
    let folder = shell.path(FOLDER);
    files::create_folder(&folder)?;
    shell.note(format_args!("pictures: {FOLDER}"));
    last_line(shell, &[DRIVER, url, metrics, files::text(&folder)?, mode], LIMIT)
}

/// Runs a driver of pages, and returns the last line that it prints, if it succeeds.
pub(crate) fn last_line(shell: &Shell, driver: &[&str], limit: Duration) -> Result<String> {
    let output = shell.cmd("node", driver.iter().copied()).limit(limit).output()?;
    let line = output.stdout.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    if !output.status.success() {
        bail!("the page failed in the browser ({}): {line}", describe(output.status));
    }
    Ok(line.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_returns_its_last_line_or_fails_with_its_exit_code() {
        let shell = Shell::new().unwrap();
        let run = |script| last_line(&shell, &["--eval", script], LIMIT);
        assert_eq!(run("console.log('talk\\n{}\\n')").unwrap(), "{}");
        let error = run("console.log('broken'); process.exit(1)").unwrap_err();
        assert_eq!(error.to_string(), "the page failed in the browser (exit code 1): broken");
    }
}
