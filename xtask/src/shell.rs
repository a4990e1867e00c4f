//! What all commands share: the repository's folders, the children's variables, and what was done already.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::process::Cmd;
use crate::setup::Need;

/// The name of the linked toolchain that `.ci/cross-toolchain` makes.
pub(crate) const CROSS_TOOLCHAIN: &str = "cross";

/// Where the standard output of children goes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stdout {
    /// To this command's own.
    Inherit,
    /// To the standard error: this command prints a result of its own.
    ToStderr,
}

/// What a run has built, so that nothing is built twice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Artifact {
    Wasm,
    Game,
    Web,
    Binaries,
}

/// The surroundings of every child process.
pub(crate) struct Shell {
    root: PathBuf,
    cargo_home: PathBuf,
    path: OsString,
    variables: BTreeMap<&'static str, OsString>,
    /// The targets that only the linked toolchain can build for.
    cross_targets: BTreeSet<&'static str>,
    pub(crate) stdout: Stdout,
    pub(crate) ready: BTreeSet<Need>,
    pub(crate) built: BTreeSet<Artifact>,
}

impl Shell {
    pub(crate) fn new() -> Result<Self> {
        let here = env::var_os("CARGO_MANIFEST_DIR")
            .map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
        let root = here.parent().context("this crate lies in no folder")?.to_path_buf();
        let cargo_home = match env::var_os("CARGO_HOME") {
            Some(home) => home.into(),
            None => PathBuf::from(env::var_os("HOME").context("neither CARGO_HOME nor HOME is set")?)
                .join(".cargo"),
        };
        let own = [tools_dir(&root).join("bin"), root.join("wasm/node_modules/.bin"), cargo_home.join("bin")];
        let inherited = env::var_os("PATH").unwrap_or_default();
        let path = env::join_paths(own.into_iter().chain(env::split_paths(&inherited)))
            .context("a folder of this machine has a colon in its name")?;
        Ok(Self {
            root,
            cargo_home,
            path,
            variables: BTreeMap::new(),
            cross_targets: BTreeSet::new(),
            stdout: Stdout::Inherit,
            ready: BTreeSet::new(),
            built: BTreeSet::new(),
        })
    }

    /// A path inside the repository.
    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.root.join(relative)
    }

    pub(crate) fn cargo_home(&self) -> &Path {
        &self.cargo_home
    }

    /// Where tools go that the user's cargo home shall not or cannot hold.
    pub(crate) fn tools_dir(&self) -> PathBuf {
        tools_dir(&self.root)
    }

    pub(crate) fn read(&self, relative: &str) -> Result<String> {
        fs::read_to_string(self.path(relative)).with_context(|| format!("{relative} cannot be read"))
    }

    /// Sets a variable for all children from now on.
    pub(crate) fn set(&mut self, name: &'static str, value: impl AsRef<OsStr>) {
        self.variables.insert(name, value.as_ref().to_owned());
    }

    pub(crate) fn variable(&self, name: &str) -> Option<OsString> {
        self.variables.get(name).cloned().or_else(|| env::var_os(name))
    }

    /// Builds for this target with the linked toolchain from now on.
    pub(crate) fn use_cross_toolchain(&mut self, target: &'static str) {
        self.cross_targets.insert(target);
    }

    /// Where the children would find a program.
    pub(crate) fn find_program(&self, name: &str) -> Option<PathBuf> {
        env::split_paths(&self.path).map(|folder| folder.join(name)).find(|program| program.is_file())
    }

    /// A command at the root of the repository.
    pub(crate) fn cmd<'a>(&self, program: &str, args: impl IntoIterator<Item = &'a str>) -> Cmd {
        Cmd::new(program, args).with(|command| {
            // `cargo run` describes this crate to us; to a build below, that would only be a reason to start anew.
            for (name, _) in env::vars_os().filter(|(name, _)| describes_this_crate(name)) {
                command.env_remove(name);
            }
            command.current_dir(&self.root).env("PATH", &self.path).envs(&self.variables);
            if self.stdout == Stdout::ToStderr {
                command.stdout(io::stderr());
            }
        })
    }

    /// A command in a folder of the repository.
    pub(crate) fn cmd_in<'a>(
        &self,
        folder: &str,
        program: &str,
        args: impl IntoIterator<Item = &'a str>,
    ) -> Cmd {
        self.cmd(program, args).with(|command| {
            command.current_dir(self.path(folder));
        })
    }

    /// A cargo (or wasm-pack) command in a folder of the repository which builds for this target.
    pub(crate) fn cmd_for<'a>(
        &self,
        target: &str,
        folder: &str,
        program: &str,
        args: impl IntoIterator<Item = &'a str>,
    ) -> Cmd {
        self.cmd_in(folder, program, args).with(|command| {
            if self.cross_targets.contains(target) {
                command.env("RUSTUP_TOOLCHAIN", CROSS_TOOLCHAIN);
            }
        })
    }
}

fn tools_dir(root: &Path) -> PathBuf {
    root.join("target/tools")
}

fn describes_this_crate(variable: &OsStr) -> bool {
    let name = variable.to_string_lossy();
    ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_"]
        .iter()
        .any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_cargo_run_sets_is_dropped() {
        assert!(describes_this_crate(OsStr::new("CARGO_PKG_NAME")));
        assert!(describes_this_crate(OsStr::new("CARGO_MANIFEST_DIR")));
        assert!(!describes_this_crate(OsStr::new("CARGO_TARGET_DIR")));
        assert!(!describes_this_crate(OsStr::new("CARGO_HOME")));
    }

    #[test]
    fn children_see_the_tools_first_and_the_variables_set() {
        let mut shell = Shell::new().unwrap();
        shell.set("RAKWIRE_XTASK_TEST", "seen");
        let printed =
            shell.cmd("sh", ["-c", "echo $RAKWIRE_XTASK_TEST; echo $PATH"]).probe().unwrap().unwrap();
        let (variable, path) = printed.split_once('\n').unwrap();
        assert_eq!(variable, "seen");
        assert!(path.starts_with(&*shell.tools_dir().join("bin").to_string_lossy()));
    }
}
