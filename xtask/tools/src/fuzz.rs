//! Fuzzing and soaking of the core, the relay's flows and the game: what finds faults by itself.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::corpus::{self, Corpora};
use xtask::shell::Shell;
use xtask::stages::FUZZ;
use xtask::tasks;

/// Where the targets and their inputs lie.
const FOLDER: &str = "fuzz";
const TARGETS: [&str; 14] = [
    "datagram",
    "offline",
    "endpoint",
    "game",
    "rabbit",
    "message",
    "relay",
    "awareness",
    "snowfight",
    "secure",
    "front",
    "data_channels",
    "proxy",
    "admission",
];
/// How many inputs the stage of the tests tries of each target: about a minute's worth in all. They come from one seed,
/// so that a change is judged by what it changed, and not by luck; looking for more is the command's business.
const STAGE_RUNS: [u32; 14] = [
    8_000_000, 20_000_000, 15_000, 5_000, 400_000, 400_000, 200_000, 1_000_000, 600, 20_000, 100_000,
    200_000, 2_000_000, 20_000,
];
/// What the command takes unless it is told.
const DEFAULT_SECONDS: u32 = 60;
/// The longest input in bytes: long ones only take time.
const LONGEST: &str = "-max_len=512";

/// How long to look for faults.
#[derive(Args)]
pub(crate) struct FuzzOptions {
    /// Seconds in all, shared out among the targets; each also runs its corpus.
    #[arg(long, value_name = "N", default_value_t = DEFAULT_SECONDS)]
    seconds: u32,
    /// Keep what was found: write the archives of inputs anew, with as few as reach the same code.
    #[arg(long)]
    update_corpus: bool,
}

/// How many runs to make.
#[derive(Args)]
pub(crate) struct SoakOptions {
    /// Seeded runs over bad networks.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    runs: u64,
}

/// `cargo xtask fuzz`.
pub(crate) fn command(shell: &Shell, options: &FuzzOptions) -> Result<()> {
    tasks::set_up(shell, &FUZZ)?;
    cargo_fuzz(shell, &["build", "--sanitizer", "none"])?;
    let share = format!("-max_total_time={}", share(options.seconds));
    for target in TARGETS {
        run(shell, target, &[&share])?;
        if options.update_corpus {
            update(shell, target)?;
        }
    }
    Ok(())
}

/// Writes the archive of a target anew from what it started from and what the run found.
fn update(shell: &Shell, target: &str) -> Result<()> {
    let (corpus, found) = (shell.path(&corpus(target)), shell.path(&found(target)));
    for entry in fs::read_dir(&found).with_context(|| format!("{} cannot be read", found.display()))? {
        let entry = entry?;
        fs::copy(entry.path(), corpus.join(entry.file_name())).context("an input cannot be copied")?;
    }
    cargo_fuzz(shell, &["cmin", "--sanitizer", "none", target, &corpus.display().to_string()])?;
    let kept = corpora(shell).pack(target, &corpus)?;
    shell.print(format_args!("{target}: {kept} inputs kept"));
    Ok(())
}

/// The stage of `cargo xtask nightly`.
pub(crate) fn stage(shell: &Shell) -> Result<()> {
    replay(shell)?;
    cargo_fuzz(shell, &["build", "--sanitizer", "none"])?;
    for (target, runs) in TARGETS.into_iter().zip(STAGE_RUNS) {
        // What an earlier run found would change what this one tries.
        corpus::clear(&shell.path(&found(target)))?;
        run(shell, target, &["-seed=1", &format!("-runs={runs}")])?;
    }
    Ok(())
}

/// The inputs that are committed, through the targets as ordinary functions.
fn replay(shell: &Shell) -> Result<()> {
    let mut targets = TARGETS;
    targets.sort_unstable();
    let with_corpus = corpora(shell).targets()?;
    if with_corpus != targets {
        bail!("there are inputs for {}, but the targets are {}", with_corpus.join(", "), targets.join(", "));
    }
    cargo(shell, &["test"])
}

/// Formatting and lints of what the targets do; the programs themselves build for the fuzzer alone.
pub(crate) fn lints(shell: &Shell) -> Result<()> {
    cargo(shell, &["fmt", "--check"])?;
    cargo(shell, &["clippy", "--lib", "--tests", "--", "-D", "warnings"])
}

/// A command of cargo for the targets as ordinary functions.
fn cargo(shell: &Shell, args: &[&str]) -> Result<()> {
    let target_dir = shell.path("target/fuzz/replay");
    let command = shell.cmd_in(FOLDER, "cargo", args.iter().copied());
    command
        .with(|command| {
            command.env("CARGO_TARGET_DIR", target_dir);
        })
        .run()
}

/// The folder that has a folder of inputs for each target.
pub(crate) fn input_folders(shell: &Shell) -> Result<PathBuf> {
    for target in TARGETS {
        corpora(shell).unpack(target, &shell.path(&corpus(target)))?;
    }
    Ok(shell.path("target/fuzz/corpus"))
}

fn corpora(shell: &Shell) -> Corpora<'_> {
    Corpora::new(shell, shell.path(&format!("{FOLDER}/corpus")))
}

/// Where the inputs lie that a target starts from.
fn corpus(target: &str) -> String {
    format!("target/fuzz/corpus/{target}")
}

/// Where the inputs lie that a run finds.
fn found(target: &str) -> String {
    format!("target/fuzz/{target}")
}

/// `cargo xtask soak`.
pub(crate) fn soak(shell: &Shell, options: &SoakOptions) -> Result<()> {
    let runs = options.runs.to_string();
    let args = ["run", "--quiet", "--release", "-p", "rakwire", "--example", "soak", "--", runs.as_str()];
    shell.cmd("cargo", args).run()
}

/// The seconds of one target. Zero would mean for ever.
fn share(seconds: u32) -> u32 {
    (seconds / TARGETS.len() as u32).max(1)
}

/// Runs a target over its corpus and beyond. New inputs go to a folder of their own.
fn run(shell: &Shell, target: &str, limits: &[&str]) -> Result<()> {
    let (found, corpus) = (found(target), corpus(target));
    corpora(shell).unpack(target, &shell.path(&corpus))?;
    let artifacts = format!("target/fuzz/artifacts/{target}");
    for folder in [&found, &artifacts] {
        let folder = shell.path(folder);
        fs::create_dir_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    }
    let absolute = |folder: &str| shell.path(folder).display().to_string();
    let (found, corpus) = (absolute(&found), absolute(&corpus));
    let artifacts = absolute(&artifacts);
    let prefix = format!("-artifact_prefix={artifacts}/");
    let head =
        ["run", "--sanitizer", "none", target, &found, &corpus, "--", LONGEST, "-verbosity=0", &prefix];
    let args = [&head, limits].concat();
    let Err(error) = cargo_fuzz(shell, &args) else {
        shell.print(format_args!("{target}: nothing found"));
        return Ok(());
    };
    match newest(&artifacts) {
        Some(input) => bail!("{error:#}\n  the input that shows it: {input}"),
        None => Err(error),
    }
}

/// The file that was written last.
fn newest(folder: &str) -> Option<String> {
    let files = fs::read_dir(folder).ok()?.filter_map(Result::ok);
    let dated = files.filter_map(|file| Some((file.metadata().ok()?.modified().ok()?, file.path())));
    dated.max().map(|(_, path)| path.display().to_string())
}

/// The coverage that fuzzing needs is an unstable flag of the compiler, which a stable one takes for this variable.
fn cargo_fuzz(shell: &Shell, args: &[&str]) -> Result<()> {
    let target_dir = shell.path("target/fuzz/build");
    let command = shell.cmd("cargo", ["fuzz"].into_iter().chain(args.iter().copied()));
    command
        .with(|command| {
            command.env("RUSTC_BOOTSTRAP", "1").env("CARGO_TARGET_DIR", target_dir);
        })
        .run()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_gets_its_share_and_none_runs_for_ever() {
        assert_eq!(share(10 * TARGETS.len() as u32), 10);
        assert_eq!(share(0), 1);
    }
}
