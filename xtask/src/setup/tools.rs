//! Tools that cargo installs: into the user's cargo home, or under `target/tools` where that one cannot be written or
//! holds another version for somebody else.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::done::Done;
use super::rust::MIRI_TOOLCHAIN;
use crate::artifacts;
use crate::shell::Shell;

pub(super) const WASM_PACK: &str = "0.15.1";
pub(super) const CARGO_DENY: &str = "0.20.2";
pub(super) const CARGO_FUZZ: &str = "0.13.2";
pub(super) const CARGO_MUTANTS: &str = "27.1.0";
pub(super) const CARGO_SEMVER_CHECKS: &str = "0.51.0";
pub(super) const DEFMT_PRINT: &str = "1.2.0";
pub(super) const VERIFPAL: &str = "1.6.7";

/// A tool as cargo knows it.
struct Tool<'a> {
    package: &'a str,
    program: &'a str,
    /// What makes the program say its version.
    ask: &'a [&'a str],
    version: &'a str,
    /// Whether a version other than the named one will do when it is there.
    any_version: bool,
    /// Whether it needs a newer compiler than this repository, and one that optimises.
    newest_rust: bool,
}

/// Builds the command-line half of wasm-bindgen, which is a crate here. It must be of exactly the version of the library half.
pub(super) fn wasm_bindgen(shell: &Shell) -> Result<Done> {
    shell.cmd("cargo", ["build", "--package", "xtask-bindgen"]).run()?;
    let built = artifacts::target_dir(shell)?.join("debug/xtask-bindgen");
    let folder = shell.tools_dir().join("bin");
    let program = folder.join("wasm-bindgen");
    fs::create_dir_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    if fs::read_link(&program).ok().as_ref() != Some(&built) {
        artifacts::remove_file(&program)?;
        symlink(&built, &program).with_context(|| format!("{} cannot be made", program.display()))?;
    }
    Ok(Done::Installed(program.display().to_string()))
}

pub(super) fn wasm_pack(shell: &Shell) -> Result<Done> {
    let tool = Tool {
        package: "wasm-pack",
        program: "wasm-pack",
        ask: &["--version"],
        version: WASM_PACK,
        any_version: false,
        newest_rust: false,
    };
    tool.install(shell)
}

pub(super) fn cargo_deny(shell: &Shell) -> Result<Done> {
    let tool = Tool {
        package: "cargo-deny",
        program: "cargo-deny",
        ask: &["--version"],
        version: CARGO_DENY,
        any_version: true,
        newest_rust: false,
    };
    tool.install(shell)
}

pub(super) fn cargo_fuzz(shell: &Shell) -> Result<Done> {
    let tool = Tool {
        package: "cargo-fuzz",
        program: "cargo-fuzz",
        ask: &["--version"],
        version: CARGO_FUZZ,
        any_version: true,
        newest_rust: false,
    };
    tool.install(shell)
}

pub(super) fn cargo_mutants(shell: &Shell) -> Result<Done> {
    let tool = Tool {
        package: "cargo-mutants",
        program: "cargo-mutants",
        ask: &["mutants", "--version"],
        version: CARGO_MUTANTS,
        // What it changes differs from version to version.
        any_version: false,
        newest_rust: false,
    };
    tool.install(shell)
}

pub(super) fn cargo_semver_checks(shell: &Shell) -> Result<Done> {
    let tool = Tool {
        package: "cargo-semver-checks",
        program: "cargo-semver-checks",
        ask: &["semver-checks", "--version"],
        version: CARGO_SEMVER_CHECKS,
        any_version: true,
        newest_rust: false,
    };
    tool.install(shell)
}

/// What looks for attacks in models of protocols.
pub(super) fn verifpal(shell: &Shell) -> Result<Done> {
    let tool = Tool {
        package: "verifpal",
        program: "verifpal",
        ask: &["--version"],
        version: VERIFPAL,
        // What it finds, and what it says of that, differs from version to version.
        any_version: false,
        newest_rust: true,
    };
    tool.install(shell)
}

pub(super) fn verifpal_by_hand() -> String {
    format!("`cargo +{MIRI_TOOLCHAIN} install --locked --ignore-rust-version verifpal@{VERIFPAL}`")
}

/// What makes text of a firmware's log.
pub(super) fn defmt_print(shell: &Shell) -> Result<Done> {
    let tool = Tool {
        package: "defmt-print",
        program: "defmt-print",
        ask: &["--version"],
        version: DEFMT_PRINT,
        any_version: true,
        newest_rust: false,
    };
    tool.install(shell)
}

/// Removes what building the tools left.
pub(super) fn clean(shell: &Shell) {
    // Nothing left is what is wanted.
    let _ = fs::remove_dir_all(build_dir(shell));
}

impl Tool<'_> {
    fn install(&self, shell: &Shell) -> Result<Done> {
        let found = self.found(shell)?;
        if let Some(version) = found.as_deref().filter(|version| self.accepts(version)) {
            return Ok(Done::Present(format!("{version} is there")));
        }
        // A version that another project wants stays where it is; the one under target/tools comes first on the path.
        let home = match found {
            None if can_write(shell.cargo_home()) => shell.cargo_home().to_path_buf(),
            None | Some(_) => shell.tools_dir(),
        };
        let root = home.to_string_lossy();
        let package = format!("{}@{}", self.package, self.version);
        // Most of the tools have not much to compute, so what counts is that they are there soon.
        let build = if self.newest_rust { "--ignore-rust-version" } else { "--debug" };
        let args = ["install", "--locked", build, package.as_str(), "--bin", self.program, "--root", &root];
        shell
            .cmd("cargo", args)
            .with(|command| {
                if self.newest_rust {
                    command.env("RUSTUP_TOOLCHAIN", MIRI_TOOLCHAIN);
                }
                // They share many dependencies.
                command.env("CARGO_TARGET_DIR", build_dir(shell)).env("CARGO_PROFILE_DEV_DEBUG", "0");
            })
            .run()?;
        match self.found(shell)? {
            Some(version) if self.accepts(&version) => Ok(Done::Installed(format!("{version}, in {root}"))),
            Some(version) => bail!("{} was installed, but the one found is {version}", self.package),
            None => bail!("{} was installed in {root}, but does not run", self.package),
        }
    }

    fn accepts(&self, version: &str) -> bool {
        self.any_version || version == self.version
    }

    fn found(&self, shell: &Shell) -> Result<Option<String>> {
        let printed = shell.cmd(self.program, self.ask.iter().copied()).probe()?;
        Ok(printed.as_deref().and_then(version_printed).map(str::to_owned))
    }
}

fn build_dir(shell: &Shell) -> PathBuf {
    shell.tools_dir().join("build")
}

fn can_write(folder: &Path) -> bool {
    let probe = folder.join(format!(".rakwire-can-write-{}", std::process::id()));
    let written = fs::write(&probe, b"").is_ok();
    written && fs::remove_file(&probe).is_ok()
}

/// The version in the line `NAME VERSION` which tools print, some with more after it.
fn version_printed(printed: &str) -> Option<&str> {
    let word = printed.split_whitespace().nth(1)?;
    word.starts_with(|first: char| first.is_ascii_digit()).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_versions_are_found() {
        assert_eq!(version_printed("wasm-bindgen 0.2.130\n"), Some("0.2.130"));
        assert_eq!(version_printed("wasm-bindgen 0.2.130 (abcdef)\n"), Some("0.2.130"));
        assert_eq!(version_printed("usage: tool"), None);
        assert_eq!(version_printed(""), None);
    }

    #[test]
    fn a_folder_that_is_not_there_cannot_be_written() {
        assert!(!can_write(Path::new("/no/such/folder")));
        assert!(can_write(&std::env::temp_dir()));
    }
}
