//! Fuzzing and soaking of the core, the relay's flows and the game.

use std::fs;
use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;

use crate::corpus::Corpora;
use xtask::files;
use xtask::shell::Shell;
use xtask::stages::FUZZ;
use xtask::tasks;
use xtask::workspaces;

/// The folder of the targets and their inputs.
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
/// Number of inputs that the stage tries per target: about a minute in total. They come from a fixed seed, so that a
/// change is evaluated by its effect and not by chance; use the command to search further.
const STAGE_RUNS: [u32; 14] = [
    8_000_000, 20_000_000, 15_000, 5_000, 400_000, 400_000, 200_000, 1_000_000, 600, 20_000, 100_000,
    200_000, 2_000_000, 20_000,
];
/// The default duration of the command.
const DEFAULT_SECONDS: u32 = 60;
/// Maximum input length in bytes: longer ones only take time.
const LONGEST: &str = "-max_len=512";

/// The options of a search for faults.
#[derive(Args)]
pub(crate) struct FuzzOptions {
    /// Total seconds, divided among the targets; each also runs its corpus
    #[arg(long, value_name = "N", default_value_t = DEFAULT_SECONDS)]
    seconds: u32,
    /// Keep new inputs: rewrite the archives, with the fewest inputs that reach the same code
    #[arg(long)]
    update_corpus: bool,
}

/// The options of a soak.
#[derive(Args)]
pub(crate) struct SoakOptions {
    /// Number of seeded runs over bad networks
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    runs: u64,
    /// Run a server and clients over sockets for this time instead: memory, files and tasks must not grow
    #[arg(long, value_name = "M", conflicts_with = "runs")]
    minutes: Option<u32>,
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

/// Rewrites the archive of a target from its initial inputs and those found by the run.
fn update(shell: &Shell, target: &str) -> Result<()> {
    let (corpus, found) = (shell.path(&corpus(target)), shell.path(&found(target)));
    files::copy_folder(&found, &corpus)?;
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
        // Inputs found by an earlier run would change those that this one tries.
        files::empty_folder(&shell.path(&found(target)))?;
        run(shell, target, &["-seed=1", &format!("-runs={runs}")])?;
    }
    Ok(())
}

/// Runs the committed inputs through the targets as ordinary functions.
fn replay(shell: &Shell) -> Result<()> {
    let mut targets = TARGETS;
    targets.sort_unstable();
    let with_corpus = corpora(shell).targets()?;
    if with_corpus != targets {
        bail!("there are inputs for {}, but the targets are {}", with_corpus.join(", "), targets.join(", "));
    }
    workspaces::cargo(shell, FOLDER, &["test"]).run()
}

/// Returns the folder that contains a folder of inputs per target.
pub(crate) fn input_folders(shell: &Shell) -> Result<PathBuf> {
    for target in TARGETS {
        corpora(shell).unpack(target, &shell.path(&corpus(target)))?;
    }
    Ok(shell.path("target/fuzz/corpus"))
}

fn corpora(shell: &Shell) -> Corpora<'_> {
    Corpora::new(shell, shell.path(&format!("{FOLDER}/corpus")))
}

/// Returns the folder of the initial inputs of a target.
fn corpus(target: &str) -> String {
    format!("target/fuzz/corpus/{target}")
}

/// Returns the folder of the inputs found by a run.
fn found(target: &str) -> String {
    format!("target/fuzz/{target}")
}

/// `cargo xtask soak`.
pub(crate) fn soak(shell: &Shell, options: &SoakOptions) -> Result<()> {
    let (package, amount) = match options.minutes {
        Some(minutes) => ("rakwire-native", minutes.to_string()),
        None => ("rakwire", options.runs.to_string()),
    };
    let args = ["run", "--quiet", "--release", "-p", package, "--example", "soak", "--", amount.as_str()];
    shell.cmd("cargo", args).run()
}

/// The stage `soak`: a minute over sockets.
pub(crate) fn soak_stage(shell: &Shell) -> Result<()> {
    soak(shell, &SoakOptions { runs: 0, minutes: Some(1) })
}

/// Returns the seconds for one target. Zero would mean forever.
fn share(seconds: u32) -> u32 {
    (seconds / TARGETS.len() as u32).max(1)
}

/// Runs a target over its corpus and beyond. New inputs go to a separate folder.
fn run(shell: &Shell, target: &str, limits: &[&str]) -> Result<()> {
    let (found, corpus) = (found(target), corpus(target));
    corpora(shell).unpack(target, &shell.path(&corpus))?;
    let artifacts = format!("target/fuzz/artifacts/{target}");
    for folder in [&found, &artifacts] {
        files::create_folder(&shell.path(folder))?;
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
        Some(input) => bail!("{error:#}\n  failing input: {input}"),
        None => Err(error),
    }
}

/// Returns the file that was written last.
fn newest(folder: &str) -> Option<String> {
    let files = fs::read_dir(folder).ok()?.filter_map(Result::ok);
    let dated = files.filter_map(|file| Some((file.metadata().ok()?.modified().ok()?, file.path())));
    dated.max().map(|(_, path)| path.display().to_string())
}

/// Coverage for fuzzing is an unstable compiler flag, which this variable enables on a stable compiler.
fn cargo_fuzz(shell: &Shell, args: &[&str]) -> Result<()> {
    let target_dir = shell.path("target/fuzz/build");
    let command = shell.cmd("cargo", ["fuzz"].into_iter().chain(args.iter().copied()));
    command.env("RUSTC_BOOTSTRAP", "1").env("CARGO_TARGET_DIR", target_dir).run()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_gets_its_share_and_none_runs_forever() {
        assert_eq!(share(10 * TARGETS.len() as u32), 10);
        assert_eq!(share(0), 1);
    }
}
