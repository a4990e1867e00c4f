//! Fuzzing and soaking of the core, the relay's flows, the game and the C API.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Args;

use xtask::files;
use xtask::shell::Shell;
use xtask::stages::FUZZ;
use xtask::tasks;
use xtask::workspaces;

/// The folder of the targets and their inputs.
const FOLDER: &str = "fuzz";
/// The targets, and the number of inputs that the stage tries, about a minute in total. The stage uses a fixed seed, so
/// that its result does not depend on chance; the command searches further.
#[rustfmt::skip]
const TARGETS: [(&str, u32); 15] = [
    ("datagram", 8_000_000), ("offline", 20_000_000), ("endpoint", 15_000), ("game", 5_000), ("rabbit", 400_000),
    ("message", 400_000), ("relay", 200_000), ("awareness", 1_000_000), ("snowfight", 600), ("secure", 20_000),
    ("front", 100_000), ("data_channels", 200_000), ("proxy", 2_000_000), ("admission", 20_000), ("capi", 40_000),
];
/// The default duration of the command.
const DEFAULT_SECONDS: u32 = 60;
/// The maximum input length in bytes. Longer inputs take time without reaching more code.
const LONGEST: &str = "-max_len=512";

/// The options of a search for faults.
#[derive(Args)]
pub(crate) struct FuzzOptions {
    /// Total duration in seconds, divided among the targets; each also runs its corpus
    #[arg(long, value_name = "N", default_value_t = DEFAULT_SECONDS)]
    seconds: u32,
    /// Rewrite the archives with the new inputs, minimised to the fewest inputs that reach the same code
    #[arg(long)]
    update_corpus: bool,
}

/// The options of a soak.
#[derive(Args)]
pub(crate) struct SoakOptions {
    /// Number of seeded runs over bad networks
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    runs: u64,
    /// Instead run a server and clients over sockets this long, checking that memory, files and tasks do not grow
    #[arg(long, value_name = "M", conflicts_with = "runs")]
    minutes: Option<u32>,
}

/// `cargo xtask fuzz`.
pub(crate) fn command(shell: &Shell, options: &FuzzOptions) -> Result<()> {
    tasks::set_up(shell, &FUZZ)?;
    cargo_fuzz(shell, &["build", "--sanitizer", "none"])?;
    // At least 1, because 0 means no limit.
    let share = format!("-max_total_time={}", (options.seconds / TARGETS.len() as u32).max(1));
    for (target, _) in TARGETS {
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
    let kept = pack(shell, &archive(shell, target), &corpus)?;
    shell.print(format_args!("{target}: {kept} inputs kept"));
    Ok(())
}

/// The stage of `cargo xtask nightly`.
pub(crate) fn stage(shell: &Shell) -> Result<()> {
    let mut programs = files::names(&shell.path("fuzz/fuzz_targets"))?;
    programs.retain(|name| !TARGETS.iter().any(|(target, _)| *name == format!("{target}.rs")));
    if !programs.is_empty() {
        bail!("fuzz/fuzz_targets has {}, which the stage does not run", programs.join(", "));
    }
    replay(shell)?;
    cargo_fuzz(shell, &["build", "--sanitizer", "none"])?;
    for (target, runs) in TARGETS {
        // Removes the inputs found by an earlier run, because they would change the inputs that this run tries.
        files::empty_folder(&shell.path(&found(target)))?;
        run(shell, target, &["-seed=1", &format!("-runs={runs}")])?;
    }
    Ok(())
}

/// Runs the committed inputs through the targets as ordinary functions.
fn replay(shell: &Shell) -> Result<()> {
    workspaces::cargo(shell, FOLDER, &["test"]).run()
}

/// Returns the folder that contains a folder of inputs per target.
pub(crate) fn input_folders(shell: &Shell) -> Result<PathBuf> {
    for (target, _) in TARGETS {
        unpack(shell, &archive(shell, target), &shell.path(&corpus(target)))?;
    }
    Ok(shell.path("target/fuzz/corpus"))
}

/// Returns the archive with the initial inputs of a target.
fn archive(shell: &Shell, target: &str) -> PathBuf {
    shell.path(&format!("{FOLDER}/corpus/{target}.tar.gz"))
}

/// Replaces the contents of a folder by the inputs of an archive.
fn unpack(shell: &Shell, archive: &Path, folder: &Path) -> Result<()> {
    files::empty_folder(folder)?;
    let args = ["--extract", "--gzip", "--file", files::text(archive)?, "--directory", files::text(folder)?];
    shell.cmd("tar", args).run()
}

/// Writes the inputs in a folder to an archive without times and users; returns their number.
fn pack(shell: &Shell, archive: &Path, folder: &Path) -> Result<usize> {
    let names = files::names(folder)?;
    let args = ["--create", "--format=ustar", "--mtime=@0", "--mode=0644", "--owner=0", "--group=0"];
    let compress = "--use-compress-program=gzip -n9";
    let place = [compress, "--file", files::text(archive)?, "--directory", files::text(folder)?, "--"];
    shell.cmd("tar", args.into_iter().chain(place).chain(names.iter().map(String::as_str))).run()?;
    Ok(names.len())
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

/// The stage `soak`: a minute over sockets, and twelve virtual minutes of a simulated world.
pub(crate) fn soak_stage(shell: &Shell) -> Result<()> {
    soak(shell, &SoakOptions { runs: 0, minutes: Some(1) })?;
    let world = ["run", "--quiet", "--release", "-p", "rakwire-worlds", "--", "--soak", "0.2"];
    shell.cmd("cargo", world).run()
}

/// Runs a target over its corpus and beyond. New inputs go to a separate folder.
fn run(shell: &Shell, target: &str, limits: &[&str]) -> Result<()> {
    let (found, corpus) = (found(target), corpus(target));
    unpack(shell, &archive(shell, target), &shell.path(&corpus))?;
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

/// Runs cargo-fuzz. Its coverage needs an unstable compiler flag, which `RUSTC_BOOTSTRAP` allows on a stable compiler.
fn cargo_fuzz(shell: &Shell, args: &[&str]) -> Result<()> {
    let target_dir = shell.path("target/fuzz/build");
    let command = shell.cmd("cargo", ["fuzz"].into_iter().chain(args.iter().copied()));
    command.env("RUSTC_BOOTSTRAP", "1").env("CARGO_TARGET_DIR", target_dir).run()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_depends_only_on_its_inputs() {
        let shell = Shell::new().unwrap();
        let folder = std::env::temp_dir().join(format!("rakwire-corpus-{}", std::process::id()));
        let packed = |name: &str, inputs: [&str; 2]| {
            let (from, archive) = (folder.join(name), folder.join(format!("{name}.tar.gz")));
            inputs.iter().for_each(|input| files::write(&from.join(input), input.repeat(700)).unwrap());
            assert_eq!(pack(&shell, &archive, &from).unwrap(), 2);
            archive
        };
        let (one, other) = (packed("one", ["a", "b"]), packed("other", ["b", "a"]));
        assert_eq!(fs::read(one).unwrap(), fs::read(&other).unwrap());
        files::write(&folder.join("one/left over"), "").unwrap();
        unpack(&shell, &other, &folder.join("one")).unwrap();
        assert_eq!(files::names(&folder.join("one")).unwrap(), ["a", "b"]);
        assert!(unpack(&shell, &folder.join("gone"), &folder.join("one")).is_err());
        fs::remove_dir_all(folder).unwrap();
    }
}
