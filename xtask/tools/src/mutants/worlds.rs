//! Runs simulated worlds against the mutants, and counts the worlds until each fault is found.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use xtask::files;
use xtask::process::describe;
use xtask::shell::Shell;

use super::copy::{FINDING, FOUND, LIST, Mutant, TARGET_DIR, VARIABLE, build, choose, list};

/// The program that runs worlds.
const PROGRAM: &str = "rakwire-worlds";
/// The number of worlds in which the nightly stage must find a mutant.
const WORLDS: u64 = 60;
/// The time limit for a mutant. Each of its worlds takes a fraction of a second. Exceeding the limit is a finding.
const LIMIT: Duration = Duration::from_secs(1_200);

/// The way in which worlds found a mutant.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    /// In the last of this number of worlds, with the broken guarantee.
    In(u64, String),
    /// A world did not end, or the program crashed, as described.
    Ended(String),
    Never,
}

/// `cargo xtask mutants --worlds N`: tries all mutants, including those that worlds need not find.
pub(super) fn command(shell: &Shell, worlds: u64, only: &str) -> Result<()> {
    run(shell, worlds, only, |_| true)
}

/// Checks in the nightly stage that worlds find the mutants that they must find.
pub(super) fn check(shell: &Shell) -> Result<()> {
    run(shell, WORLDS, "", |mutant| mutant.not_by_worlds.is_none())
}

fn run(shell: &Shell, worlds: u64, only: &str, is_meant: impl Fn(&Mutant) -> bool) -> Result<()> {
    let mutants = list(shell)?;
    let chosen = choose(&mutants, only, is_meant)?;
    build(shell, &mutants, &["-p", PROGRAM])?;
    let none = find(shell, worlds, 0)?;
    if none != Found::Never {
        bail!("worlds report a fault without any mutant: {none:?}");
    }
    let mut survivors = Vec::new();
    for (number, mutant) in &chosen {
        let found = find(shell, worlds, *number)?;
        let text = match &found {
            Found::In(worlds, broken) => format!("{worlds:>6}  {}: {broken}", mutant.name),
            Found::Ended(how) => format!("{:>6}  {}: {how}", "?", mutant.name),
            Found::Never => {
                let reason = mutant.not_by_worlds.as_deref().unwrap_or(&mutant.breaks);
                format!("{:>6}  {}: not found in {worlds} worlds. {reason}", "-", mutant.name)
            }
        };
        shell.print(format_args!("{text}"));
        if found == Found::Never && mutant.not_by_worlds.is_none() {
            survivors.push(format!("\n  \"{}\": {}", mutant.name, mutant.breaks));
        }
    }
    if !survivors.is_empty() {
        let excluded = format!("if worlds cannot find one, give the reason in `not_by_worlds` of {LIST}");
        bail!(
            "{} mutants were not found in {worlds} worlds; {excluded}:{}",
            survivors.len(),
            survivors.concat()
        );
    }
    shell.print(format_args!(
        "worlds found each of the mutants that they must find, and nothing without them"
    ));
    Ok(())
}

/// Runs worlds with mutant `number` active, until one of them fails.
fn find(shell: &Shell, worlds: u64, number: usize) -> Result<Found> {
    let program = shell.path(TARGET_DIR).join("debug").join(PROGRAM);
    let worlds = worlds.to_string();
    let command =
        shell.cmd(files::text(&program)?, ["--worlds", worlds.as_str(), "--no-shrink"]).limit(LIMIT);
    let output = match command.env(VARIABLE, number.to_string()).output() {
        Err(error) if error.to_string().contains("did not exit within") => {
            return Ok(Found::Ended("a world did not end".to_owned()));
        }
        output => output?,
    };
    match output.status.code() {
        Some(0) => Ok(Found::Never),
        Some(FOUND) => parse(&output.stdout).context("the program does not name the world that failed"),
        Some(_) => bail!("the worlds could not be run: {}", describe(output.status)),
        None => Ok(Found::Ended(describe(output.status))),
    }
}

/// Parses the line `world SEED: GUARANTEE`; seeds begin at 0.
fn parse(output: &str) -> Option<Found> {
    let (seed, broken) = output.lines().find_map(|line| line.strip_prefix("world ")?.split_once(": "))?;
    Some(Found::In(seed.parse::<u64>().ok()? + 1, broken.chars().take(FINDING).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_worlds_is_taken_from_the_first_failure() {
        let output =
            "10 worlds, 5.0 per second\nworld 11: after 900 ms: message 3 arrived twice\nreproduce it: ...\n";
        assert_eq!(parse(output), Some(Found::In(12, "after 900 ms: message 3 arrived twice".to_owned())));
        assert_eq!(parse("60 worlds kept their guarantees\n"), None);
    }
}
