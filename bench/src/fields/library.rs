//! The compared libraries.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Serialize;

use super::work::{Kind, Work};
use crate::pairing::itself;

/// The lock file with the versions of the other libraries.
const LOCK: &str = "bench/fields/Cargo.lock";
/// The path of the program for the other Rust libraries, relative to the folder of the programs.
const FIELDS_PEER: &str = "release/fields-peer";
const GNS_PEER: &str = "gns/gns-peer";

/// A library under measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Library {
    Rakwire,
    /// rakwire with secure connections.
    RakwireSecure,
    /// quinn: reliable messages in one stream, and unreliable ones in datagrams.
    Quinn,
    Enet,
    Kcp,
    Renet,
    /// GameNetworkingSockets.
    Gns,
}

impl Library {
    pub(super) const ALL: [Self; 7] =
        [Self::Rakwire, Self::RakwireSecure, Self::Quinn, Self::Enet, Self::Kcp, Self::Renet, Self::Gns];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Rakwire => "rakwire",
            Self::RakwireSecure => "rakwire, secure",
            Self::Quinn => "quinn",
            Self::Enet => "ENet",
            Self::Kcp => "KCP",
            Self::Renet => "renet",
            Self::Gns => "GNS",
        }
    }

    /// Returns true if the library supports the work. KCP has no unreliable messages.
    pub(super) fn can(self, work: &Work) -> bool {
        self != Self::Kcp || !matches!(work.kind, Kind::Unreliable { .. })
    }

    /// Returns the command that runs the program of the library. `peers` is the folder with the programs.
    pub(super) fn command(self, peers: &Path) -> Result<Command> {
        let (program, arguments): (_, &[&str]) = match self {
            Self::Rakwire => (None, &["peer"]),
            Self::RakwireSecure => (None, &["peer", "--secure"]),
            Self::Quinn => (Some(FIELDS_PEER), &["quinn"]),
            Self::Enet => (Some(FIELDS_PEER), &["enet"]),
            Self::Kcp => (Some(FIELDS_PEER), &["kcp"]),
            Self::Renet => (Some(FIELDS_PEER), &["renet"]),
            Self::Gns => (Some(GNS_PEER), &[]),
        };
        let mut command = match program {
            None => itself()?,
            Some(program) => {
                let program = peers.join(program);
                let is_there = program.is_file();
                ensure!(
                    is_there,
                    "{} is missing: build it with `cargo xtask bench fields`",
                    program.display()
                );
                Command::new(program)
            }
        };
        command.args(arguments);
        Ok(command)
    }
}

/// Returns the names and versions of the crates of the other libraries.
pub(super) fn versions() -> Result<BTreeMap<String, String>> {
    let lock = std::fs::read_to_string(LOCK).with_context(|| LOCK.to_owned())?;
    ["quinn", "rusty_enet", "tokio_kcp", "renet", "game-networking-sockets-sys"]
        .into_iter()
        .map(|name| {
            let version = version(&lock, name).with_context(|| format!("{LOCK} does not contain {name}"))?;
            Ok((name.to_owned(), version.to_owned()))
        })
        .collect()
}

fn version<'l>(lock: &'l str, name: &str) -> Option<&'l str> {
    let (_, package) = lock.split_once(&format!("name = \"{name}\"\nversion = \""))?;
    package.split_once('"').map(|(version, _)| version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_found_by_the_exact_name_of_the_crate() {
        let lock = "[[package]]\nname = \"quinn-udp\"\nversion = \"1.0.0\"\n\n[[package]]\nname = \"quinn\"\nversion = \"2.0.0\"\n";
        assert_eq!((version(lock, "quinn"), version(lock, "kcp")), (Some("2.0.0"), None));
    }
}
