//! The Dockerfile: a few rules hold everywhere; it is linted and built where the tools for it are installed.

use anyhow::{Context, Result, bail};

use xtask::shell::Shell;

const DOCKERFILE: &str = "relay/packaging/Dockerfile";
const IMAGE: &str = "rakwire-relay-check";

/// Lints the Dockerfile with hadolint, and builds it with docker or podman. A machine may have none of them.
pub(super) fn check(shell: &Shell) -> Result<()> {
    let manifest = shell.read("Cargo.toml")?;
    let oldest = manifest.lines().find_map(|line| line.strip_prefix("rust-version = \"")?.strip_suffix('"'));
    let wrong = wrong(&shell.read(DOCKERFILE)?, oldest.context("Cargo.toml has no rust-version")?);
    if !wrong.is_empty() {
        bail!("{DOCKERFILE}:\n  {}", wrong.join("\n  "));
    }
    if shell.find_program("hadolint").is_some() {
        shell.cmd("hadolint", [DOCKERFILE]).run()?;
    }
    let works = |builder: &&str| {
        shell.find_program(builder).is_some()
            && shell.cmd(builder, ["info"]).probe().is_ok_and(|said| said.is_some())
    };
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

/// Faults of a Dockerfile, which builds with no older Rust than the manifests promise.
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
            wrong.push(format!("FROM {image}: the manifests promise Rust {oldest_rust}"));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_is_found() {
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
