//! The environment shared by all commands: the repository's folders, and the settings of child processes.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};

use crate::log::Log;
use crate::process::Cmd;
use crate::stop::Stop;

/// The name of the linked toolchain that `.ci/cross-toolchain` creates.
pub const CROSS_TOOLCHAIN: &str = "cross";
/// The variable that passes the targets that only the linked toolchain can build to `xtask-tools`.
const CROSS_TARGETS: &str = "RAKWIRE_XTASK_CROSS_TARGETS";
const TOOLS: &str = "target/tools";
/// The time that a part of xtask has to exit after SIGTERM, because it first ends its own child processes.
const PART_GRACE: Duration = Duration::from_secs(15);

/// The environment of child processes. Clones share everything except the log and the stop signal.
#[derive(Clone)]
pub struct Shell {
    shared: Arc<Shared>,
    /// The destination of output.
    pub log: Log,
    stop: Stop,
}

struct Shared {
    root: PathBuf,
    cargo_home: PathBuf,
    path: OsString,
    state: Mutex<State>,
}

/// Results of the set-up.
#[derive(Default)]
struct State {
    /// The environment variables for all child processes.
    variables: BTreeMap<&'static str, OsString>,
    /// Targets that only the linked toolchain can build.
    cross_targets: BTreeSet<String>,
}

impl Shell {
    /// Creates the environment for commands in this repository.
    pub fn new() -> Result<Self> {
        let here = env::var_os("CARGO_MANIFEST_DIR")
            .map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
        let root = here.ancestors().skip(1).find(|folder| folder.join("Cargo.lock").is_file());
        let root = root.context("this crate is not in a workspace")?.to_path_buf();
        let cargo_home = match env::var_os("CARGO_HOME") {
            Some(home) => home.into(),
            None => PathBuf::from(env::var_os("HOME").context("neither CARGO_HOME nor HOME is set")?)
                .join(".cargo"),
        };
        let own = [root.join(TOOLS).join("bin"), root.join("wasm/node_modules/.bin"), cargo_home.join("bin")];
        let inherited = env::var_os("PATH").unwrap_or_default();
        let path = env::join_paths(own.into_iter().chain(env::split_paths(&inherited)))
            .context("the name of a folder on the path contains a colon")?;
        let cross = env::var(CROSS_TARGETS).unwrap_or_default();
        let cross_targets = cross.split_whitespace().map(str::to_owned).collect();
        let state = Mutex::new(State { cross_targets, ..State::default() });
        let shared = Shared { root, cargo_home, path, state };
        Ok(Self { shared: Arc::new(shared), log: Log::Terminal, stop: Stop::default() })
    }

    /// Returns a copy for a part of a run, with its own log and stop signal.
    pub fn for_part(&self, log: Log, stop: &Stop) -> Self {
        Self { shared: Arc::clone(&self.shared), log, stop: stop.clone() }
    }

    /// Returns a copy that keeps the standard output free for the result of a command.
    pub fn with_free_stdout(&self) -> Self {
        self.with_log(if matches!(self.log, Log::Terminal) { Log::Stderr } else { self.log.clone() })
    }

    /// Returns a copy with another log.
    pub fn with_log(&self, log: Log) -> Self {
        self.for_part(log, &self.stop)
    }

    /// Prints a line of a result.
    pub fn print(&self, line: impl Display) {
        self.log.print(line);
    }

    /// Prints a line about progress.
    pub fn note(&self, line: impl Display) {
        self.log.note(line);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a path inside the repository.
    pub fn path(&self, relative: &str) -> PathBuf {
        self.shared.root.join(relative)
    }

    /// Returns the user's cargo home.
    pub fn cargo_home(&self) -> &Path {
        &self.shared.cargo_home
    }

    /// Returns the folder of tools that must not, or cannot, be installed into the user's cargo home.
    pub fn tools_dir(&self) -> PathBuf {
        self.path(TOOLS)
    }

    /// Reads a file of the repository.
    pub fn read(&self, relative: &str) -> Result<String> {
        fs::read_to_string(self.path(relative)).with_context(|| format!("{relative} cannot be read"))
    }

    /// Sets an environment variable for all later child processes.
    pub fn set(&self, name: &'static str, value: impl AsRef<OsStr>) {
        self.state().variables.insert(name, value.as_ref().to_owned());
    }

    /// Returns an environment variable as child processes see it.
    pub fn variable(&self, name: &str) -> Option<OsString> {
        self.state().variables.get(name).cloned().or_else(|| env::var_os(name))
    }

    /// Makes later commands for this target use the linked toolchain.
    pub fn use_cross_toolchain(&self, target: &'static str) {
        self.state().cross_targets.insert(target.to_owned());
    }

    /// Finds a program on the search path of child processes.
    pub fn find_program(&self, name: &str) -> Option<PathBuf> {
        env::split_paths(&self.shared.path).map(|folder| folder.join(name)).find(|program| program.is_file())
    }

    /// Creates a command at the root of the repository.
    pub fn cmd<'a>(&self, program: &str, args: impl IntoIterator<Item = &'a str>) -> Cmd {
        let command = Cmd::new(program, args).with(|command| {
            // `cargo run` sets variables that describe this crate; in a nested build they would only cause a rebuild.
            for (name, _) in env::vars_os().filter(|(name, _)| describes_this_crate(name)) {
                command.env_remove(name);
            }
            command.current_dir(&self.shared.root).env("PATH", &self.shared.path);
            command.envs(&self.state().variables);
        });
        command.logged(&self.log).until(&self.stop)
    }

    /// Creates a command that is a part of xtask, which receives the results of the set-up.
    pub fn cmd_of_xtask<'a>(&self, program: &str, args: impl IntoIterator<Item = &'a str>) -> Cmd {
        let cross_targets: Vec<_> = self.state().cross_targets.iter().cloned().collect();
        self.cmd(program, args).grace(PART_GRACE).env(CROSS_TARGETS, cross_targets.join(" "))
    }

    /// Creates a command in a folder of the repository.
    pub fn cmd_in<'a>(&self, folder: &str, program: &str, args: impl IntoIterator<Item = &'a str>) -> Cmd {
        self.cmd(program, args).folder(self.path(folder))
    }

    /// Creates a cargo (or wasm-pack) command in a folder of the repository that builds for this target.
    pub fn cmd_for<'a>(
        &self,
        target: &str,
        folder: &str,
        program: &str,
        args: impl IntoIterator<Item = &'a str>,
    ) -> Cmd {
        self.cmd_in(folder, program, args).with(|command| {
            if self.state().cross_targets.contains(target) {
                command.env("RUSTUP_TOOLCHAIN", CROSS_TOOLCHAIN);
            }
        })
    }
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
    fn children_receive_variables_and_targets_and_have_the_tools_first_in_their_path() {
        let shell = Shell::new().unwrap();
        shell.set("RAKWIRE_XTASK_TEST", "seen");
        shell.use_cross_toolchain("b");
        shell.use_cross_toolchain("a");
        let script = format!("echo $RAKWIRE_XTASK_TEST ${CROSS_TARGETS} $CARGO_PKG_NAME; echo $PATH");
        let printed = shell.cmd_of_xtask("sh", ["-c", &script]).probe().unwrap().unwrap();
        // `cargo test` sets the name of this package.
        let (variables, path) = printed.split_once('\n').unwrap();
        assert_eq!(variables, "seen a b");
        assert!(path.starts_with(&*shell.tools_dir().join("bin").to_string_lossy()));
    }
}
