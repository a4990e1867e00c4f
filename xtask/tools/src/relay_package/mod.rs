//! Builds the Debian package of the relay, and tests it in its own root.

mod contents;
mod guide;
mod installed;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;

use self::contents::FOLDER;
use xtask::artifacts;
use xtask::setup::Need;
use xtask::shell::Shell;
use xtask::tasks;

const DOCKERFILE: &str = "relay/packaging/Dockerfile";
const IMAGE: &str = "rakwire-relay-check";
const DEBIAN_SCRIPT: &str = include_str!("debian.sh");
/// The time limit for downloading and booting Debian and following the guide, which alone may take ten minutes.
const DEBIAN_LIMIT: Duration = Duration::from_secs(1_800);

/// Options of `cargo xtask package-relay`.
#[derive(Args)]
pub(crate) struct Options {
    /// Install the package into its own root, start and drain the relay, and remove the package
    #[arg(long)]
    test: bool,
    /// Follow docs/relay.md on a bare Debian with systemd, created by debootstrap and booted by systemd-nspawn. Needs
    /// root
    #[arg(long)]
    debian: bool,
}

/// `cargo xtask package-relay`: builds the relay with optimisation, and its package.
pub(crate) fn command(shell: &Shell, options: &Options) -> Result<()> {
    if options.debian {
        tasks::set_up(shell, &[Need::BareDebian])?;
    }
    let programs = artifacts::fast_programs(shell)?;
    let package = build(shell, FOLDER, &programs.relay)?;
    if options.test {
        installed::check(shell, &package)?;
    }
    if options.debian {
        follow_guide(shell, &package)?;
    }
    Ok(())
}

/// The stage of `cargo xtask nightly`. Packs programs without optimisation.
pub(crate) fn stage(shell: &Shell) -> Result<()> {
    check_dockerfile(shell)?;
    let programs = artifacts::built_programs(shell)?;
    let package = build(shell, FOLDER, &programs.relay)?;
    installed::check(shell, &package)
}

/// Packs a built relay in a folder of the repository, and returns the path of the package.
pub(crate) fn build(shell: &Shell, folder: &str, relay: &Path) -> Result<PathBuf> {
    let package = contents::build(shell, folder, relay)?;
    let size = fs::metadata(&package)?.len();
    shell.print(format_args!("{}: {size} bytes", package.display()));
    Ok(package)
}

/// Checks a few rules of the Dockerfile, lints it with hadolint, and builds it with docker or podman. Skips tools that
/// the machine lacks.
fn check_dockerfile(shell: &Shell) -> Result<()> {
    let manifest = shell.read("Cargo.toml")?;
    let oldest = manifest.lines().find_map(|line| line.strip_prefix("rust-version = \"")?.strip_suffix('"'));
    let wrong = wrong(&shell.read(DOCKERFILE)?, oldest.context("Cargo.toml has no rust-version")?);
    if !wrong.is_empty() {
        bail!("{DOCKERFILE}:\n  {}", wrong.join("\n  "));
    }
    if shell.find_program("hadolint").is_some() {
        shell.cmd("hadolint", [DOCKERFILE]).run()?;
    }
    let works = |builder: &&str| shell.cmd(builder, ["info"]).probe().is_ok_and(|said| said.is_some());
    let Some(builder) = ["docker", "podman"].into_iter().find(works) else {
        shell.print(format_args!("{DOCKERFILE} is not built: neither docker nor podman works here"));
        return Ok(());
    };
    shell.cmd(builder, ["build", "--file", DOCKERFILE, "--tag", IMAGE, "."]).run()?;
    let said = shell.cmd(builder, ["run", "--rm", "--read-only", IMAGE, "--version"]).probe()?;
    if !said.as_deref().is_some_and(|said| said.starts_with("rakwire-relay ")) {
        bail!("the image prints {said:?} for --version");
    }
    shell.cmd(builder, ["rmi", IMAGE]).run()
}

/// Returns the faults of a Dockerfile, for example a Rust image older than the `rust-version` of the manifests.
fn wrong(text: &str, oldest_rust: &str) -> Vec<String> {
    let lines: Vec<_> = text.lines().filter_map(|line| line.split_once(' ')).collect();
    let of = |wanted| lines.iter().filter(move |(name, _)| *name == wanted).map(|(_, rest)| rest.trim());
    let version =
        |text: &str| text.split(['.', '-']).map_while(|part| part.parse().ok()).collect::<Vec<u32>>();
    let mut wrong = Vec::new();
    for image in of("FROM").map(|rest| rest.split(' ').next().unwrap_or(rest)) {
        let (name, tag) = image.split_once(':').unwrap_or((image, ""));
        if version(tag).is_empty() {
            wrong.push(format!("FROM {image}: name a version"));
        } else if name == "rust" && version(tag) < version(oldest_rust) {
            wrong.push(format!("FROM {image}: the manifests need Rust {oldest_rust} or newer"));
        }
    }
    let user = of("USER").next_back().unwrap_or("root");
    if user.starts_with("root") || user.starts_with('0') {
        wrong.push("the program runs as root: name a USER".to_owned());
    }
    if of("ENTRYPOINT").count() != 1 || !of("ENTRYPOINT").chain(of("CMD")).all(|rest| rest.starts_with('[')) {
        wrong.push("a shell would get the signals: write one ENTRYPOINT, and CMD, as JSON".to_owned());
    }
    if of("ADD").next().is_some() {
        wrong.push("ADD unpacks and fetches: use COPY".to_owned());
    }
    wrong
}

/// Follows the guide for operators on a bare Debian with systemd.
fn follow_guide(shell: &Shell, package: &Path) -> Result<()> {
    let root = shell.path(FOLDER).join("debian");
    let [config, steps, socket] =
        ["toml", "steps.sh", "socket.sh"].map(|extension| root.with_extension(extension));
    fs::write(&config, guide::config_with_files(shell)?)?;
    fs::write(&steps, guide::commands(shell)?)?;
    fs::write(&socket, guide::socket_commands(shell)?)?;
    let paths = [package, &root, &config, &steps, &socket].map(|path| path.display().to_string());
    let line = ["-c", DEBIAN_SCRIPT, "sh"].into_iter().chain(paths.iter().map(String::as_str));
    shell.cmd("sh", line).limit(DEBIAN_LIMIT).run()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_of_a_container_file_is_reported() {
        let good = "FROM rust:1.95-slim AS build\nFROM debian:12-slim\nUSER 10001\nENTRYPOINT [\"/a\"]\nCMD [\"b\"]\n";
        assert_eq!(wrong(good, "1.88"), [""; 0]);
        for (right, fault) in [
            ("debian:12-slim", "debian"),
            ("debian:12-slim", "debian:latest"),
            ("rust:1.95-slim", "rust:1.87"),
            ("USER 10001\n", ""),
            ("USER 10001", "USER 0:0"),
            ("ENTRYPOINT [\"/a\"]\n", ""),
            ("ENTRYPOINT [\"/a\"]", "ENTRYPOINT /a"),
            ("CMD [\"b\"]", "CMD b"),
            ("USER", "ADD x /x\nUSER"),
        ] {
            assert_eq!(wrong(&good.replace(right, fault), "1.88").len(), 1, "{fault}");
        }
    }
}
