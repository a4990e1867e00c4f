//! Network namespaces that a script sets up as machines.

use std::path::Path;
use std::process::{Command, Output};

use crate::support::{Server, run};

/// Network namespaces, removed on drop.
pub(crate) struct Namespaces {
    keeper: Server,
    is_root: bool,
}

/// Returns true if the process runs as root. Any other user creates the network namespaces inside a user namespace.
fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output().expect("the program `id`");
    id.stdout == b"0\n"
}

impl Namespaces {
    /// Runs a script in its own namespace; it prints `ready`, and ends when its input does.
    pub(crate) fn new(script: &str, arguments: &[&str]) -> Self {
        let is_root = is_root();
        let user: &[&str] = if is_root { &[] } else { &["--map-root-user"] };
        let made = [user, &["--net", "--mount", "sh", "-c", script, "sh"], arguments].concat();
        Self { keeper: Server::start(Path::new("unshare"), &made, "ready"), is_root }
    }

    /// Returns the nsenter arguments that run a program in the script's namespace, or in one that the script has
    /// created.
    fn arguments<'c>(&self, keeper: &'c str, machine: Option<&'c str>, command: &[&'c str]) -> Vec<&'c str> {
        let user: &[&str] = if self.is_root { &[] } else { &["--user", "--preserve-credentials"] };
        let there = machine.map_or_else(Vec::new, |machine| vec!["ip", "netns", "exec", machine]);
        [&["--target", keeper, "--net", "--mount"], user, &there, command].concat()
    }

    /// Starts the command-line tool.
    pub(crate) fn start(&self, machine: Option<&str>, command: &[&str], word: &str) -> Server {
        self.start_program(machine, &[&[env!("CARGO_BIN_EXE_rakwire")], command].concat(), word)
    }

    /// Starts a program.
    pub(crate) fn start_program(&self, machine: Option<&str>, command: &[&str], word: &str) -> Server {
        let keeper = self.keeper.child.id().to_string();
        Server::start(Path::new("nsenter"), &self.arguments(&keeper, machine, command), word)
    }

    /// Runs the command-line tool.
    pub(crate) fn run(&self, machine: Option<&str>, command: &[&str]) -> Output {
        self.run_program(machine, &[&[env!("CARGO_BIN_EXE_rakwire")], command].concat())
    }

    /// Runs a program.
    pub(crate) fn run_program(&self, machine: Option<&str>, command: &[&str]) -> Output {
        let keeper = self.keeper.child.id().to_string();
        run(Path::new("nsenter"), &self.arguments(&keeper, machine, command), "")
    }
}
