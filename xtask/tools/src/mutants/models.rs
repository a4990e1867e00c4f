//! Runs the models against the mutants.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use xtask::files;
use xtask::process::describe;
use xtask::shell::Shell;

use super::copy::{FINDING, FOUND, TARGET_DIR, VARIABLE, build, choose, list};
use crate::fuzz;

/// The program that runs the models.
const PROGRAM: &str = "models";
/// The time limit of the models, which normally take seconds and stop cases that do not end.
const LIMIT: Duration = Duration::from_secs(900);

/// Runs the models against each mutant with `only` in its name.
pub(super) fn run(shell: &Shell, only: &str) -> Result<()> {
    let mutants = list(shell)?;
    let chosen = choose(&mutants, only, |mutant| mutant.not_by_models.is_none())?;
    build(shell, &mutants, &["-p", "rakwire", "--example", PROGRAM])?;
    let inputs = fuzz::input_folders(shell)?;
    if let Some(finding) = killed_by(shell, &inputs, 0)? {
        bail!("the models report a finding without any mutant: {finding}");
    }
    let mut survivors = Vec::new();
    for (number, mutant) in &chosen {
        let started = Instant::now();
        let killer = killed_by(shell, &inputs, *number)?;
        let seconds = started.elapsed().as_secs_f64();
        shell.print(format_args!(
            "{seconds:>6.1} s  {}: killed by {}",
            mutant.name,
            killer.as_deref().unwrap_or("NOTHING")
        ));
        if killer.is_none() {
            survivors.push(format!("\n  \"{}\": {}", mutant.name, mutant.breaks));
        }
    }
    if !survivors.is_empty() {
        bail!("{} of {} mutants survived:{}", survivors.len(), chosen.len(), survivors.concat());
    }
    shell.print(format_args!(
        "{0} of {0} mutants were killed, and nothing is found without them",
        chosen.len()
    ));
    Ok(())
}

/// Runs the models with mutant `number` active, and also over the fuzzing inputs in `inputs`. Returns the finding that
/// kills the mutant.
fn killed_by(shell: &Shell, inputs: &Path, number: usize) -> Result<Option<String>> {
    let program = shell.path(TARGET_DIR).join("debug/examples").join(PROGRAM);
    let command = shell.cmd(files::text(&program)?, [files::text(inputs)?]).limit(LIMIT);
    let output = command.env(VARIABLE, number.to_string()).output()?;
    match output.status.code() {
        Some(0) => Ok(None),
        Some(FOUND) => Ok(Some(output.stdout.trim().chars().take(FINDING).collect())),
        Some(_) => bail!("the models could not be run: {}", describe(output.status)),
        None => Ok(Some(describe(output.status))),
    }
}
