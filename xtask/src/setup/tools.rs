//! Tools installed by cargo: into the user's cargo home, or under `target/tools` if that is not writable or has another
//! version.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::rust::MIRI_TOOLCHAIN;
use super::system::Done;
use crate::artifacts;
use crate::files;
use crate::shell::Shell;

pub(super) const WASM_PACK: Tool = Tool { exact: true, ..Tool::new("wasm-pack", "0.15.1") };
pub(super) const CARGO_DENY: Tool = Tool::new("cargo-deny", "0.20.2");
pub(super) const CARGO_FUZZ: Tool = Tool::new("cargo-fuzz", "0.13.2");
pub(super) const CARGO_HACK: Tool = Tool { ask: &["hack", "--version"], ..Tool::new("cargo-hack", "0.6.46") };
/// Inserts mutations. Requires the exact version, because mutations differ between versions.
pub(super) const CARGO_MUTANTS: Tool =
    Tool { ask: &["mutants", "--version"], exact: true, ..Tool::new("cargo-mutants", "27.1.0") };
pub(super) const CARGO_SEMVER_CHECKS: Tool =
    Tool { ask: &["semver-checks", "--version"], ..Tool::new("cargo-semver-checks", "0.51.0") };
/// Builds the book. Its web server, the slowest part to compile, is left out.
pub(super) const MDBOOK: Tool =
    Tool { features: &["--no-default-features", "--features", "search"], ..Tool::new("mdbook", "0.5.4") };
/// Converts the log of a firmware to text.
pub(super) const DEFMT_PRINT: Tool = Tool::new("defmt-print", "1.2.0");
/// Searches for attacks in models of protocols. Its results differ between versions.
pub(super) const VERIFPAL: Tool = Tool { exact: true, newest_rust: true, ..Tool::new("verifpal", "1.6.7") };

/// A tool that cargo installs: a package with a program of the same name.
pub(super) struct Tool {
    name: &'static str,
    version: &'static str,
    /// The arguments that make the program print its version.
    ask: &'static [&'static str],
    /// True if only this version is acceptable.
    exact: bool,
    /// True if it needs a newer compiler than this repository, and optimisation.
    newest_rust: bool,
    /// The cargo arguments that select its features.
    features: &'static [&'static str],
}

/// Builds the command-line part of wasm-bindgen, a crate of this repository. Its version must equal that of the library
/// part.
pub(super) fn wasm_bindgen(shell: &Shell) -> Result<String> {
    shell.cmd("cargo", ["build", "--package", "xtask-bindgen"]).run()?;
    let built = artifacts::target_dir(shell)?.join("debug/xtask-bindgen");
    let folder = shell.tools_dir().join("bin");
    let program = folder.join("wasm-bindgen");
    files::create_folder(&folder)?;
    if fs::read_link(&program).ok().as_ref() != Some(&built) {
        files::remove_file(&program)?;
        symlink(&built, &program).with_context(|| format!("{} cannot be created", program.display()))?;
    }
    Ok(program.display().to_string())
}

/// Removes the build folder of the tools.
pub(super) fn clean(shell: &Shell) {
    // It may not exist.
    let _ = fs::remove_dir_all(build_dir(shell));
}

impl Tool {
    const fn new(name: &'static str, version: &'static str) -> Self {
        Self { name, version, ask: &["--version"], exact: false, newest_rust: false, features: &[] }
    }

    pub(super) fn install(&self, shell: &Shell) -> Result<Done> {
        let found = self.found(shell)?;
        if let Some(version) = found.as_deref().filter(|version| self.accepts(version)) {
            return Ok(Done::Present(format!("{version} is present")));
        }
        // Another project may need another version, so that stays. The folder target/tools comes first on the path.
        let home = match found {
            None if can_write(shell.cargo_home()) => shell.cargo_home().to_path_buf(),
            None | Some(_) => shell.tools_dir(),
        };
        let root = home.to_string_lossy();
        let package = format!("{}@{}", self.name, self.version);
        // Most tools compute little, so a short build matters more than fast code.
        let build = if self.newest_rust { "--ignore-rust-version" } else { "--debug" };
        let args = ["install", "--locked", build, package.as_str(), "--bin", self.name, "--root", &root];
        shell
            .cmd("cargo", args.into_iter().chain(self.features.iter().copied()))
            .with(|command| {
                if self.newest_rust {
                    command.env("RUSTUP_TOOLCHAIN", MIRI_TOOLCHAIN);
                }
                // The tools share many dependencies, so they share a build folder.
                command.env("CARGO_TARGET_DIR", build_dir(shell)).env("CARGO_PROFILE_DEV_DEBUG", "0");
            })
            .run()?;
        match self.found(shell)? {
            Some(version) if self.accepts(&version) => Ok(Done::Installed(format!("{version}, in {root}"))),
            Some(version) => bail!("{} was installed, but the version found is {version}", self.name),
            None => bail!("{} was installed in {root}, but does not run", self.name),
        }
    }

    fn accepts(&self, version: &str) -> bool {
        !self.exact || version == self.version
    }

    fn found(&self, shell: &Shell) -> Result<Option<String>> {
        let printed = shell.cmd(self.name, self.ask.iter().copied()).probe()?;
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

/// Returns the version in the line `NAME VERSION` that tools print. A `v` before it and text after it are ignored.
fn version_printed(printed: &str) -> Option<&str> {
    let word = printed.split_whitespace().nth(1)?;
    let word = word.strip_prefix('v').unwrap_or(word);
    word.starts_with(|first: char| first.is_ascii_digit()).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_versions_are_parsed() {
        assert_eq!(version_printed("wasm-bindgen 0.2.130\n"), Some("0.2.130"));
        assert_eq!(version_printed("wasm-bindgen 0.2.130 (abcdef)\n"), Some("0.2.130"));
        assert_eq!(version_printed("mdbook v0.5.4\n"), Some("0.5.4"));
        assert_eq!(version_printed("usage: tool"), None);
        assert_eq!(version_printed(""), None);
    }

    #[test]
    fn a_missing_folder_is_not_writable() {
        assert!(!can_write(Path::new("/no/such/folder")));
        assert!(can_write(&std::env::temp_dir()));
    }
}
