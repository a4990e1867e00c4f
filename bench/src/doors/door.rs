//! The doors: the languages and engines through which a program uses rakwire.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde::Serialize;

use crate::pairing::itself;

/// The folder of the programs that no workspace of its own builds.
const FOLDER: &str = "target/doors";

/// A door, or a backend with which a door is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Door {
    /// The polled endpoint of rakwire-native.
    Native,
    /// The asynchronous endpoint of rakwire-native, for programs with tokio tasks.
    NativeTasks,
    C,
    Dotnet,
    Mono,
    Python,
    Bevy,
    /// Replicon's renet backend for Bevy.
    BevyRenet,
}

/// A reference value for a goal: at least this multiple of the rate of another door.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Goal {
    pub(super) of: Door,
    pub(super) least: f64,
}

impl Door {
    pub(super) const ALL: [Self; 8] = [
        Self::Native,
        Self::NativeTasks,
        Self::C,
        Self::Dotnet,
        Self::Mono,
        Self::Python,
        Self::Bevy,
        Self::BevyRenet,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Native => "native, polled",
            Self::NativeTasks => "native, tasks",
            Self::C => "C",
            Self::Dotnet => "C#, .NET",
            Self::Mono => "C#, Mono",
            Self::Python => "Python",
            Self::Bevy => "Bevy",
            Self::BevyRenet => "Bevy, renet backend",
        }
    }

    pub(super) const fn goal(self) -> Option<Goal> {
        match self {
            Self::C => Some(Goal { of: Self::Native, least: 0.97 }),
            Self::Dotnet => Some(Goal { of: Self::Native, least: 0.9 }),
            Self::Bevy => Some(Goal { of: Self::BevyRenet, least: 0.9 }),
            Self::Native | Self::NativeTasks | Self::Mono | Self::Python | Self::BevyRenet => None,
        }
    }

    /// Returns true if the program is a server and a client, and so needs no other server.
    pub(super) const fn is_pair(self) -> bool {
        matches!(self, Self::Bevy | Self::BevyRenet)
    }

    /// Returns true if the client waits while no echo arrives, so that its CPU time shows the cost of a message.
    pub(super) const fn waits(self) -> bool {
        !self.is_pair()
    }

    /// Builds the program of the door. Returns the command that runs it.
    pub(super) fn build(self) -> Result<Vec<String>> {
        match self {
            Self::Native => Ok(vec![own()?, "door".to_owned()]),
            Self::NativeTasks => Ok(vec![own()?, "door".to_owned(), "--tasks".to_owned()]),
            Self::C => build_c(),
            Self::Dotnet => build_csharp("door-dotnet"),
            Self::Mono => build_csharp("door-mono"),
            Self::Python => build_python(),
            Self::Bevy => build_bevy("rakwire"),
            Self::BevyRenet => build_bevy("renet"),
        }
    }
}

fn own() -> Result<String> {
    Ok(itself()?.get_program().to_string_lossy().into_owned())
}

/// Runs a program of a build. Its last line of errors is the reason of a failure.
fn run(command: &mut Command) -> Result<()> {
    let output = command.output();
    let program = command.get_program().display();
    let output = output.with_context(|| format!("`{program}` cannot be started"))?;
    if output.status.success() {
        return Ok(());
    }
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    eprint!("{errors}");
    let mut lines = errors.lines().map(str::trim).filter(|line| !line.is_empty());
    let first_error = lines.clone().find(|line| line.starts_with("error"));
    bail!("{}", first_error.or_else(|| lines.next_back()).unwrap_or("the build failed"))
}

/// Returns the absolute path of a file that a build has written.
fn built(path: impl AsRef<Path>) -> Result<String> {
    let path = path.as_ref();
    let path: PathBuf = path.canonicalize().with_context(|| path.display().to_string())?;
    Ok(path.to_string_lossy().into_owned())
}

/// Creates a cargo command for a workspace next to the main one, with the target folder of `cargo xtask`.
fn cargo(folder: &str, arguments: &[&str]) -> Result<Command> {
    let mut command = Command::new("cargo");
    command.args(arguments).args(["--release", "--locked"]).current_dir(folder);
    command.env("CARGO_TARGET_DIR", std::env::current_dir()?.join("target").join(folder));
    Ok(command)
}

fn build_c() -> Result<Vec<String>> {
    run(&mut cargo("capi", &["build", "--lib"])?)?;
    std::fs::create_dir_all(FOLDER)?;
    let program = format!("{FOLDER}/door-c");
    let mut compiler = Command::new("cc");
    compiler.args(["-std=c11", "-O2", "-o", &program, "-I", "capi/include", "capi/benches/door.c"]);
    compiler.args(["target/capi/release/librakwire_c.a", "-lpthread", "-ldl", "-lm", "-lgcc_s"]);
    run(&mut compiler)?;
    Ok(vec![built(program)?])
}

fn build_csharp(script: &str) -> Result<Vec<String>> {
    let mut check = Command::new("csharp/check");
    check.arg(script).env("CARGO_TARGET_DIR", std::env::current_dir()?.join("target/capi"));
    run(&mut check)?;
    Ok(vec![built(format!("csharp/target/{script}"))?])
}

/// Installs the package into an environment of its own. pip builds it with optimisation.
fn build_python() -> Result<Vec<String>> {
    let environment = format!("{FOLDER}/python");
    let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned());
    run(Command::new(python).args(["-m", "venv", &environment]))?;
    let mut install = Command::new(format!("{environment}/bin/python"));
    install.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--force-reinstall",
        "./python",
    ]);
    run(install.env("CARGO_TARGET_DIR", std::env::current_dir()?.join("target/python")))?;
    // The path is not resolved: it is a link that Python needs in its environment.
    let python = std::env::current_dir()?.join(environment).join("bin/python");
    ensure!(python.exists(), "{} is missing", python.display());
    Ok(vec![python.to_string_lossy().into_owned(), built("python/examples/door.py")?])
}

fn build_bevy(backend: &str) -> Result<Vec<String>> {
    run(&mut cargo("bevy", &["build", "--example", "door"])?)?;
    Ok(vec![built("target/bevy/release/examples/door")?, backend.to_owned()])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(script: &str) -> String {
        run(Command::new("sh").args(["-c", script])).unwrap_err().to_string()
    }

    #[test]
    fn the_reason_of_a_failed_build_is_its_first_error_or_its_last_line() {
        assert_eq!(failure("echo 'error: no' >&2; echo more >&2; exit 1"), "error: no");
        assert_eq!(failure("echo first >&2; echo 'install it' >&2; exit 1"), "install it");
        assert_eq!(failure("exit 1"), "the build failed");
        assert!(run(Command::new("no-such-program").arg("x")).is_err());
        assert!(run(Command::new("true").arg("x")).is_ok());
    }
}
