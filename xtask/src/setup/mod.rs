//! Set-up: installs or builds missing requirements of the commands on this machine.

mod need;
mod npm;
mod peers;
mod rust;
mod system;
mod tools;

use anyhow::{Result, anyhow};

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
        How::Rust(install, _) => install(shell),
        How::Node => npm::node(shell),
        How::Npm(folders) => npm::packages(shell, folders),
        How::Peers(peers) => peers::build(shell, peers),
        How::Built(build, _) => build(shell).map(Done::Installed),
    };
    done.map_err(|reason| {
        let by_hand = by_hand(need);
        let by_hand = by_hand.map_or_else(String::new, |by_hand| format!("\n  to do it manually: {by_hand}"));
        anyhow!("the set-up step \"{}\" failed: {reason:#}{by_hand}", need.name())
    })
}

/// Describes how a missing need is met.
pub fn doing(need: Need) -> &'static str {
    match need.how() {
        How::System(_) | How::Browser(..) => "the system's package manager installs it",
        How::Cargo(_) => "cargo compiles and installs it",
        How::Targets(_) | How::Rust(..) => "rustup fetches it",
        How::Node => "looks for it",
        How::Npm(_) => "npm fetches them",
        How::Peers(_) => "fetches and compiles it",
        How::Built(..) => "builds it",
    }
}

/// Returns manual steps for a failed need.
fn by_hand(need: Need) -> Option<String> {
    match need.how() {
        How::System(wanted) => Some(system::by_hand(wanted)),
        How::Browser(variable, _, package) => {
            Some(format!("`apt-get install {package}`, or set {variable} to its path"))
        }
        How::Cargo(tool) => Some(tool.by_hand()),
        How::Targets(targets) => Some(rust::by_hand(targets)),
        How::Rust(_, by_hand) => Some(by_hand()),
        How::Node => Some("install Node 20 or newer with npm: `apt-get install nodejs npm`".to_owned()),
        How::Npm(folders) => Some(format!("`npm ci` in {}/", folders.join("/ and "))),
        How::Peers(_) => Some(format!("`bash {}`, and follow its output", peers::SCRIPT)),
        How::Built(..) => None,
    }
}

/// Removes temporary files of the installation.
pub fn clean(shell: &Shell) {
    tools::clean(shell);
}
