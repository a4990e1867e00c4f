//! Mutation testing: faults are inserted into a copy of the core. The models must find each of them, and nothing
//! without one.
//!
//! All mutants of `fuzz/mutants.toml` are compiled into one program, and an environment variable selects the active
//! one. Other builds contain none of them.

mod tree;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;

use self::tree::Mutant;
use crate::fuzz;
use xtask::process::describe;
use xtask::setup::Need;
use xtask::shell::Shell;
use xtask::tasks;

const LIST: &str = "fuzz/mutants.toml";
const TREE: &str = "target/mutants/tree";
const TARGET_DIR: &str = "target/mutants/build";
/// The program that runs the models, and its exit status after a finding.
const PROGRAM: &str = "models";
const FOUND: i32 = 1;
/// The number that activates no mutant.
const NONE: usize = 0;
/// The models take seconds, and stop a case that does not end by itself.
const LIMIT: Duration = Duration::from_secs(900);
/// The output folder of cargo-mutants.
const REPORT: &str = "target/mutants/all";
/// Maximum length of a finding in the table.
const FINDING: usize = 110;

/// The selection of mutants.
#[derive(Args)]
pub(crate) struct Options {
    /// Try only the mutants of the list with this in their names.
    #[arg(long, value_name = "NAME", conflicts_with = "all")]
    only: Option<String>,
    /// Let cargo-mutants change every function of the protocols and run all tests of the core: minutes to hours per
    /// file, days in total.
    #[arg(long)]
    all: bool,
    /// The part of all mutants to try, from 0/N to N-1/N.
    #[arg(long, value_name = "K/N", requires = "all")]
    shard: Option<String>,
    /// Try only the mutants in matching files.
    #[arg(long, value_name = "GLOB", requires = "all")]
    file: Option<String>,
}

/// `cargo xtask mutants`.
pub(crate) fn command(shell: &Shell, options: &Options) -> Result<()> {
    if options.all {
        return cargo_mutants(shell, options);
    }
    run(shell, options.only.as_deref())
}

/// The stage of `cargo xtask nightly`.
pub(crate) fn stage(shell: &Shell) -> Result<()> {
    run(shell, None)
}

/// Runs the models against each mutant with `only` in its name.
fn run(shell: &Shell, only: Option<&str>) -> Result<()> {
    let mutants = tree::parse(&shell.read(LIST)?).with_context(|| format!("{LIST} is wrong"))?;
    let chosen = choose(&mutants, only)?;
    tree::make(&shell.path("."), &shell.path(TREE), &mutants).with_context(|| format!("{LIST} is wrong"))?;
    build(shell)?;
    let inputs = fuzz::input_folders(shell)?;
    let without = models(shell, &inputs, NONE)?;
    if let MutantResult::Killed(finding) = without {
        bail!("the models report a finding without any mutant: {finding}");
    }
    let width = chosen.iter().map(|(_, mutant)| mutant.name.chars().count()).max().unwrap_or_default();
    shell.print(format_args!("{:<width$}  {:>7}  killed by", "mutant", "seconds"));
    let mut survivors = Vec::new();
    for &(number, mutant) in &chosen {
        let started = Instant::now();
        let result = models(shell, &inputs, number)?;
        shell.print(format_args!("{}", row(&mutant.name, width, started.elapsed(), &result)));
        if result == MutantResult::Survived {
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

/// Returns the mutants with `only` in their names, and their numbers.
fn choose<'a>(mutants: &'a [Mutant], only: Option<&str>) -> Result<Vec<(usize, &'a Mutant)>> {
    let only = only.unwrap_or_default();
    let chosen: Vec<_> = (1..).zip(mutants).filter(|(_, mutant)| mutant.name.contains(only)).collect();
    if chosen.is_empty() {
        let names: Vec<_> = mutants.iter().map(|mutant| format!("\n  {}", mutant.name)).collect();
        bail!("no mutant's name contains {only:?}; the mutants are:{}", names.concat());
    }
    Ok(chosen)
}

fn build(shell: &Shell) -> Result<()> {
    let args = ["build", "--quiet", "-p", "rakwire", "--example", PROGRAM];
    let build = shell
        .cmd_in(TREE, "cargo", args)
        // The inserted faults cause warnings.
        .env("CARGO_TARGET_DIR", shell.path(TARGET_DIR))
        .env("RUSTFLAGS", "--cap-lints=allow");
    build.run().with_context(|| {
        format!(
            "the core does not build with the mutants; if one is in a `const fn`, move it elsewhere in {LIST}"
        )
    })
}

/// The fate of a mutant.
#[derive(Debug, PartialEq, Eq)]
enum MutantResult {
    Killed(String),
    Survived,
}

/// Runs the models with mutant `number` active, among others over the inputs in the folders of `inputs`.
fn models(shell: &Shell, inputs: &Path, number: usize) -> Result<MutantResult> {
    let program = path(&shell.path(TARGET_DIR).join("debug/examples").join(PROGRAM));
    let command = shell.cmd(&program, [path(inputs).as_str()]).limit(LIMIT);
    let output = command.env(tree::VARIABLE, number.to_string()).output()?;
    match output.status.code() {
        Some(0) => Ok(MutantResult::Survived),
        Some(FOUND) => Ok(MutantResult::Killed(output.stdout.trim().to_owned())),
        Some(_) => bail!("the models could not be run: {}", describe(output.status)),
        None => Ok(MutantResult::Killed(describe(output.status))),
    }
}

fn path(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn row(name: &str, width: usize, took: Duration, result: &MutantResult) -> String {
    let killer = match result {
        MutantResult::Killed(finding) => finding.chars().take(FINDING).collect(),
        MutantResult::Survived => "NOTHING".to_owned(),
    };
    format!("{name:<width$}  {:>7.1}  {killer}", took.as_secs_f64())
}

/// Runs cargo-mutants, which reads `.cargo/mutants.toml`, over its own copy.
fn cargo_mutants(shell: &Shell, options: &Options) -> Result<()> {
    tasks::set_up(shell, &[Need::CargoMutants])?;
    let report = path(&shell.path(REPORT));
    let mut args = vec!["mutants", "--package", "rakwire", "--jobs", "1", "--output", report.as_str()];
    for (option, value) in [("--shard", &options.shard), ("--file", &options.file)] {
        args.extend(value.iter().flat_map(|value| [option, value.as_str()]));
    }
    let ran = shell.cmd("cargo", args).run();
    ran.with_context(|| format!("the survivors are listed in {REPORT}/mutants.out/missed.txt"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_matches_the_sources() {
        let shell = Shell::new().unwrap();
        let mutants = tree::parse(&shell.read(LIST).unwrap()).unwrap();
        let sources = tree::read_sources(&shell.path(".")).unwrap();
        assert_eq!(tree::locate_all(&sources, &mutants).unwrap().len(), mutants.len());
        assert!(choose(&mutants, Some("no such name")).is_err());
    }
}
