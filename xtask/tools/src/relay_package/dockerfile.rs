//! The Dockerfile: built where there is a builder, and what can be said of it without one.

use anyhow::{Context, Result, bail};

use xtask::shell::Shell;

const DOCKERFILE: &str = "relay/packaging/Dockerfile";
/// The programs that build and run images by the same arguments.
const BUILDERS: [&str; 2] = ["docker", "podman"];
const IMAGE: &str = "rakwire-relay-check";

/// Checks the Dockerfile: by hadolint where it is installed, and what matters to us everywhere.
pub(super) fn check(shell: &Shell) -> Result<()> {
    let text = shell.read(DOCKERFILE)?;
    let wrong = wrong(&text, |path| shell.path(path).exists());
    if !wrong.is_empty() {
        bail!("{DOCKERFILE}:\n  {}", wrong.join("\n  "));
    }
    let promised = shell.read("Cargo.toml")?;
    let promised =
        promised.lines().find_map(|line| line.strip_prefix("rust-version = \"")?.strip_suffix('"'));
    let image =
        text.lines().find_map(|line| line.strip_prefix("FROM rust:")).context("it builds with no Rust")?;
    let image = image.split('-').next().unwrap_or_default();
    if promised.is_some_and(|promised| minor(image) < minor(promised)) {
        bail!("{DOCKERFILE} builds with Rust {image}, which is older than the manifests promise");
    }
    if shell.find_program("hadolint").is_some() {
        shell.cmd("hadolint", [DOCKERFILE]).run()?;
    }
    match BUILDERS.into_iter().find(|builder| works(shell, builder)) {
        Some(builder) => build(shell, builder),
        None => {
            let names = BUILDERS.join(" nor ");
            shell.print(format_args!(
                "{DOCKERFILE} has nothing wrong; it is not built, as neither {names} works here"
            ));
            Ok(())
        }
    }
}

/// Whether a builder is installed and lets us use it.
fn works(shell: &Shell, builder: &str) -> bool {
    shell.find_program(builder).is_some()
        && shell.cmd(builder, ["info"]).probe().is_ok_and(|said| said.is_some())
}

/// Builds the image, and has it say its version.
fn build(shell: &Shell, builder: &str) -> Result<()> {
    shell.cmd(builder, ["build", "--file", DOCKERFILE, "--tag", IMAGE, "."]).run()?;
    let said = shell.cmd(builder, ["run", "--rm", "--read-only", IMAGE, "--version"]).probe()?;
    if !said.as_deref().is_some_and(|said| said.starts_with("rakwire-relay ")) {
        bail!("the image says {said:?} for --version");
    }
    shell.cmd(builder, ["rmi", IMAGE]).run()
}

fn minor(version: &str) -> Option<u32> {
    version.split('.').nth(1)?.parse().ok()
}

/// An instruction and its arguments, in one line each.
fn instructions(text: &str) -> Vec<(String, String)> {
    let joined = text.replace("\\\n", " ");
    let lines = joined.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let split = lines.filter_map(|line| line.split_once(char::is_whitespace));
    split.map(|(name, rest)| (name.to_owned(), rest.trim().to_owned())).collect()
}

/// What is wrong with a Dockerfile.
fn wrong(text: &str, exists: impl Fn(&str) -> bool) -> Vec<String> {
    let instructions = instructions(text);
    let of = |wanted: &'static str| {
        let named = instructions.iter().filter(move |(name, _)| name == wanted);
        named.map(|(_, rest)| rest.as_str())
    };
    let mut wrong = Vec::new();
    for image in of("FROM") {
        let image = image.split_whitespace().next().unwrap_or_default();
        if !image.contains(':') || image.ends_with(":latest") {
            wrong.push(format!("FROM {image}: name a version"));
        }
    }
    let user = of("USER").next_back().unwrap_or("root");
    if user.starts_with("root") || user.starts_with('0') {
        wrong.push("the program runs as root".to_owned());
    }
    for name in ["ENTRYPOINT", "CMD"] {
        if !of(name).all(|rest| rest.starts_with('[')) {
            wrong.push(format!("{name}: a shell would get the signals: write a JSON array"));
        }
    }
    if of("ENTRYPOINT").count() != 1 {
        wrong.push("there is no one ENTRYPOINT".to_owned());
    }
    if of("ADD").next().is_some() {
        wrong.push("ADD unpacks and fetches: use COPY".to_owned());
    }
    for copied in of("COPY").filter(|rest| !rest.starts_with("--from=")) {
        let mut paths: Vec<&str> = copied.split_whitespace().collect();
        paths.pop();
        wrong.extend(
            paths.iter().filter(|path| !exists(path)).map(|path| format!("COPY {path}: it does not exist")),
        );
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sensible_dockerfile_passes() {
        let text = "FROM rust:1.95-slim AS build\nCOPY . .\nRUN cargo build \\\n  --release\nFROM debian:12-slim\n\
                    COPY --from=build /a /a\nUSER 10001\nENTRYPOINT [\"/a\"]\nCMD [\"--help\"]\n";
        assert_eq!(wrong(text, |path| path == "."), [""; 0]);
    }

    #[test]
    fn each_fault_is_found() {
        let text = "FROM debian\nFROM rust:latest\nADD x /x\nCOPY missing /y\nENTRYPOINT /a\n";
        let found = wrong(text, |_| false);
        for part in ["FROM debian:", "FROM rust:latest:", "as root", "ENTRYPOINT:", "ADD", "COPY missing"] {
            assert!(found.iter().any(|line| line.contains(part)), "{part}: {found:?}");
        }
        assert!(wrong("USER 0:0\n", |_| true).iter().any(|line| line.contains("as root")));
    }
}
