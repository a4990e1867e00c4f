//! Fuzzing and soaking of the core and the game: what finds faults by itself.

use std::fs;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::setup::{self, Need};
use crate::shell::Shell;

/// Where the targets, their inputs and what they find lie.
pub(crate) const FOLDER: &str = "fuzz";
const TARGETS: [&str; 7] = ["datagram", "offline", "endpoint", "game", "rabbit", "message", "snowfight"];
/// How many inputs the stage of the tests tries of each target: about a minute's worth in all. They come from one seed,
/// so that a change is judged by what it changed, and not by luck; looking for more is the command's business.
const STAGE_RUNS: [u32; 7] = [8_000_000, 20_000_000, 15_000, 5_000, 400_000, 400_000, 600];
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
}

/// How many runs to make.
#[derive(Args)]
pub(crate) struct SoakOptions {
    /// Seeded runs over bad networks.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    runs: u64,
}

/// `cargo xtask fuzz`.
pub(crate) fn command(shell: &mut Shell, options: &FuzzOptions) -> Result<()> {
    setup::run(shell, &[Need::CargoFuzz])?;
    cargo_fuzz(shell, &["build", "--sanitizer", "none"])?;
    let share = format!("-max_total_time={}", share(options.seconds));
    TARGETS.into_iter().try_for_each(|target| run(shell, target, &[&share]))
}

/// The stage of `cargo xtask test`.
pub(crate) fn stage(shell: &mut Shell) -> Result<()> {
    cargo_fuzz(shell, &["build", "--sanitizer", "none"])?;
    for (target, runs) in TARGETS.into_iter().zip(STAGE_RUNS) {
        // What an earlier run found would change what this one tries.
        let found = shell.path(&format!("target/fuzz/{target}"));
        if found.exists() {
            fs::remove_dir_all(&found).with_context(|| format!("{} cannot be removed", found.display()))?;
        }
        run(shell, target, &["-seed=1", &format!("-runs={runs}")])?;
    }
    Ok(())
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

/// Runs a target over its corpus and beyond. New inputs go to a folder of their own, so that the corpus stays as it
/// was committed.
fn run(shell: &Shell, target: &str, limits: &[&str]) -> Result<()> {
    let found = format!("target/fuzz/{target}");
    let artifacts = format!("target/fuzz/artifacts/{target}");
    for folder in [&found, &artifacts] {
        let folder = shell.path(folder);
        fs::create_dir_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    }
    let absolute = |folder: &str| shell.path(folder).display().to_string();
    let (found, corpus) = (absolute(&found), absolute(&format!("{FOLDER}/corpus/{target}")));
    let artifacts = absolute(&artifacts);
    let prefix = format!("-artifact_prefix={artifacts}/");
    let head =
        ["run", "--sanitizer", "none", target, &found, &corpus, "--", LONGEST, "-verbosity=0", &prefix];
    let args = [&head, limits].concat();
    let Err(error) = cargo_fuzz(shell, &args) else {
        println!("{target}: nothing found");
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
        assert_eq!(share(70), 10);
        assert_eq!(share(0), 1);
    }

    #[test]
    fn every_target_has_its_source_and_its_corpus() {
        let shell = Shell::new().unwrap();
        for target in TARGETS {
            assert!(shell.path(&format!("fuzz/fuzz_targets/{target}.rs")).is_file());
            assert!(fs::read_dir(shell.path(&format!("fuzz/corpus/{target}"))).unwrap().next().is_some());
        }
    }
}
