//! What an operator decides, and what can be wrong with it.

use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;

use crate::origin::{AllowedOrigin, OriginPolicy};
use crate::target::{self, HostPort, TargetName, TargetSpec, Targets};

/// The longest payload of a UDP datagram over IPv4.
pub const UDP_PAYLOAD_MAX: usize = 65_507;

/// How a relay is set up.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Config {
    /// Where clients connect to. Port 0 picks a free one.
    pub listen: SocketAddr,
    /// The game servers on offer.
    pub targets: Vec<TargetSpec>,
    /// A directory of static files to serve at `/`.
    pub serve: Option<PathBuf>,
    /// The web pages that may connect. May be empty only if `listen` is a loopback address: then pages of this machine
    /// and tools that are no browser may.
    pub allow_origins: Vec<AllowedOrigin>,
    /// The bounds.
    pub limits: Limits,
}

impl Config {
    /// A relay at `listen` without any target yet.
    #[must_use]
    pub fn new(listen: SocketAddr) -> Self {
        Self {
            listen,
            targets: Vec::new(),
            serve: None,
            allow_origins: Vec::new(),
            limits: Limits::default(),
        }
    }

    /// Adds a game server.
    #[must_use]
    pub fn with_target(mut self, target: TargetSpec) -> Self {
        self.targets.push(target);
        self
    }

    /// Checks what can be checked without the network.
    pub(crate) fn check(&self) -> Result<OriginPolicy, ConfigError> {
        if self.targets.is_empty() {
            return Err(ConfigError::NoTarget);
        }
        let mut names = BTreeSet::new();
        if let Some(twice) = self.targets.iter().find(|target| !names.insert(&target.name)) {
            return Err(ConfigError::DuplicateTarget(twice.name.clone()));
        }
        if let Some(directory) = self.serve.as_ref().filter(|directory| !directory.is_dir()) {
            return Err(ConfigError::ServeDirectory(directory.clone()));
        }
        OriginPolicy::new(self.listen, &self.allow_origins).ok_or(ConfigError::OriginsUndecided(self.listen))
    }

    /// Resolves the targets, once for the life of the relay: what a name points to later changes nothing.
    pub(crate) async fn resolve(&self) -> Result<Targets, ConfigError> {
        let mut targets = Targets::default();
        for TargetSpec { name, address } in &self.targets {
            let error =
                |source| ConfigError::Unresolvable { name: name.clone(), address: address.clone(), source };
            let found = tokio::net::lookup_host(address.as_str()).await.map_err(error)?;
            let pinned = target::first_usable(found).ok_or_else(|| ConfigError::UnusableAddress {
                name: name.clone(),
                address: address.clone(),
            })?;
            targets.insert(name.clone(), pinned);
        }
        Ok(targets)
    }
}

/// The bounds on what clients can make the relay do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Clients at the same time.
    pub max_clients: usize,
    /// The longest datagram of a client, in bytes of payload; at most [`UDP_PAYLOAD_MAX`].
    pub max_datagram: usize,
    /// Datagrams that wait in each direction of a client before the oldest is dropped.
    pub queue: NonZeroUsize,
    /// How long a session lives without a datagram in either direction.
    pub idle_timeout: Duration,
    /// How often a client is pinged; it is given up after three of them without a sign of life.
    pub ping_interval: Duration,
    /// How long a TCP connection may take for the head of a request, counted from its start or from the answer before.
    pub head_timeout: Duration,
}

impl Limits {
    /// TCP connections at the same time, those of clients included.
    ///
    /// Twice the clients, so that a full relay can still tell others that it is full, and some for a small relay's page
    /// and files.
    #[must_use]
    pub const fn max_connections(&self) -> usize {
        self.max_clients.saturating_mul(2).saturating_add(64)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_clients: 1000,
            max_datagram: 1472,
            queue: const { NonZeroUsize::new(256).expect("256 is not zero") },
            idle_timeout: Duration::from_secs(60),
            ping_interval: Duration::from_secs(15),
            head_timeout: Duration::from_secs(10),
        }
    }
}

/// A mistake in the configuration, told in one line with what to do about it.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// There is nothing to relay to.
    #[error("no target given: add --target NAME=HOST:PORT")]
    NoTarget,
    /// Two targets have the same name.
    #[error("target '{0}' is given twice: give each --target its own name")]
    DuplicateTarget(TargetName),
    /// The host of a target cannot be found.
    #[error("cannot resolve '{}' of target '{name}' ({source}): check the host in --target", .address.as_str())]
    Unresolvable {
        /// The target.
        name: TargetName,
        /// What does not resolve.
        address: HostPort,
        /// What the resolver said.
        source: io::Error,
    },
    /// The host of a target has no address of a single machine.
    #[error("'{}' of target '{name}' is not the address of one machine: put the game server's own into --target", .address.as_str())]
    UnusableAddress {
        /// The target.
        name: TargetName,
        /// What is unusable.
        address: HostPort,
    },
    /// The address to listen at cannot be had.
    #[error("cannot listen at {address} ({source}): choose another --listen, or stop what uses it")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The directory of static files is not there.
    #[error("'{}' is not a directory: give --serve an existing one", .0.display())]
    ServeDirectory(PathBuf),
    /// Others than this machine can connect, and nobody said whose pages may.
    #[error(
        "{0} can be reached by others: say which pages may connect with --allow-origin ORIGIN ('*' means any), \
         or listen at 127.0.0.1"
    )]
    OriginsUndecided(SocketAddr),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(listen: &str, targets: &[&str]) -> Config {
        let config = Config::new(listen.parse().unwrap());
        targets.iter().fold(config, |config, target| config.with_target(target.parse().unwrap()))
    }

    #[test]
    fn mistakes_are_found_before_anything_is_opened() {
        assert!(matches!(config("127.0.0.1:0", &[]).check(), Err(ConfigError::NoTarget)));
        let twice = config("127.0.0.1:0", &["a=127.0.0.1:1", "b=127.0.0.1:1", "a=127.0.0.1:2"]);
        assert!(matches!(twice.check(), Err(ConfigError::DuplicateTarget(name)) if name.as_str() == "a"));
        let public = config("0.0.0.0:0", &["a=127.0.0.1:1"]);
        assert!(matches!(public.check(), Err(ConfigError::OriginsUndecided(_))));
        let mut missing = config("127.0.0.1:0", &["a=127.0.0.1:1"]);
        missing.serve = Some("no/such/directory".into());
        assert!(matches!(missing.check(), Err(ConfigError::ServeDirectory(_))));
    }

    #[tokio::test]
    async fn targets_are_pinned_to_one_address() {
        let targets =
            config("127.0.0.1:0", &["a=[::ffff:127.0.0.1]:5", "b=[::1]:6"]).resolve().await.unwrap();
        assert_eq!(targets.find("a").unwrap().1, "127.0.0.1:5".parse().unwrap());
        assert_eq!(targets.find("b").unwrap().1, "[::1]:6".parse().unwrap());
        assert!(targets.find("c").is_none());
        let group = config("127.0.0.1:0", &["a=224.0.0.1:5"]).resolve().await;
        assert!(matches!(group, Err(ConfigError::UnusableAddress { .. })));
    }
}
