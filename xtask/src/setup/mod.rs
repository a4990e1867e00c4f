//! Set-up: installs or builds missing requirements of the commands on this machine.

mod need;
mod npm;
mod peers;
mod rust;
mod system;
mod tools;

use anyhow::{Context, Result};

use self::need::How;
pub use self::need::{Need, QEMU};
pub use self::peers::{PROGRAMS as PEERS, websockify};
pub use self::rust::MIRI_TOOLCHAIN;
pub use self::system::Done;
use crate::shell::Shell;

/// Ensures that a need is met.
pub fn install(need: Need, shell: &Shell) -> Result<Done> {
    let done = match need.how() {
        How::System(wanted) => system::install_all(shell, wanted),
        How::Browser(variable, names, package) => system::browser(shell, variable, names, package),
        How::Cargo(tool) => tool.install(shell),
        How::Targets(targets) => rust::targets(shell, targets),
        How::Rust(install) => install(shell),
        How::Node => npm::node(shell),
        How::Npm(folders) => npm::packages(shell, folders),
        How::Peers(peers) => peers::build(shell, peers),
        How::Built(build, _) => build(shell).map(Done::Installed),
    };
    // The error contains the failed command, which can be repeated by hand.
    done.with_context(|| format!("the set-up step \"{}\" failed", need.name()))
}

/// Describes how a missing need is met.
pub fn doing(need: Need) -> &'static str {
    match need.how() {
        How::System(_) | How::Browser(..) => "the system's package manager installs it",
        How::Cargo(_) => "cargo compiles and installs it",
        How::Targets(_) | How::Rust(_) => "rustup fetches it",
        How::Node => "looks for it",
        How::Npm(_) => "npm fetches them",
        How::Peers(_) => "fetches and compiles it",
        How::Built(..) => "builds it",
    }
}

/// Removes temporary files of the installation.
pub fn clean(shell: &Shell) {
    tools::clean(shell);
}
