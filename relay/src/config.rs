//! The configuration and its errors.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use thiserror::Error;

use crate::flow::{FlowLimits, Rate};
use crate::origin::{AllowedOrigin, OriginPolicy};
use crate::target::{self, HostPort, Route, TargetName, TargetSpec, Targets};

/// The longest payload of a UDP datagram over IPv4.
pub const UDP_PAYLOAD_MAX: usize = 65_507;

/// The configuration of a relay.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Config {
    /// The address to listen on. Port 0 picks a free one.
    pub listen: SocketAddr,
    /// The game servers that clients can reach.
    pub targets: Vec<TargetSpec>,
    /// A directory of static files to serve at `/`, with an `index.html`.
    pub serve: Option<PathBuf>,
    /// The web pages that may connect. May be empty only if `listen` is a loopback address: then pages of this machine
    /// may connect, and clients that are not browsers.
    pub allow_origins: Vec<AllowedOrigin>,
    /// The limits.
    pub limits: Limits,
}

impl Config {
    /// A relay on `listen` without targets.
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

    /// Checks everything that does not need the network.
    pub(crate) fn check(&self) -> Result<OriginPolicy, ConfigError> {
        if self.targets.is_empty() {
            return Err(ConfigError::NoTarget);
        }
        let mut names = BTreeSet::new();
        if let Some(duplicate) = self.targets.iter().find(|target| !names.insert(&target.name)) {
            return Err(ConfigError::DuplicateTarget(duplicate.name.clone()));
        }
        self.serve.as_deref().map_or(Ok(()), check_pages)?;
        OriginPolicy::new(self.listen, &self.allow_origins).ok_or(ConfigError::OriginsRequired(self.listen))
    }

    /// Resolves the targets. This happens once: later changes of DNS have no effect.
    pub(crate) async fn resolve(&self) -> Result<Targets, ConfigError> {
        let mut targets = Targets::default();
        for TargetSpec { name, address, source, proxy_protocol } in &self.targets {
            let error =
                |source| ConfigError::Unresolvable { name: name.clone(), address: address.clone(), source };
            let found = tokio::net::lookup_host(address.as_str()).await.map_err(error)?;
            let pinned = target::first_usable(found).ok_or_else(|| ConfigError::UnusableAddress {
                name: name.clone(),
                address: address.clone(),
            })?;
            let route = Route { address: pinned, source: *source, proxy_protocol: *proxy_protocol };
            targets.insert(name.clone(), route);
        }
        Ok(targets)
    }
}

/// Checks that a directory has a page that a browser can show.
fn check_pages(directory: &Path) -> Result<(), ConfigError> {
    if !directory.is_dir() {
        return Err(ConfigError::ServeDirectory(absolute(directory)));
    }
    let index = fs::read(directory.join("index.html"));
    let index = index.map_err(|source| ConfigError::ServeIndex { directory: absolute(directory), source })?;
    if loads_typescript(&String::from_utf8_lossy(&index)) {
        return Err(ConfigError::ServeSources(absolute(directory)));
    }
    Ok(())
}

/// The directory as people can find it, or as it was given when the system cannot say.
pub(crate) fn absolute(directory: &Path) -> PathBuf {
    std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned())
}

/// Whether a page has a script in TypeScript, as the sources of a page have before they are built.
fn loads_typescript(page: &str) -> bool {
    let scripts = page.split("<script").skip(1);
    let mut tags = scripts.filter_map(|script| script.split('>').next());
    tags.any(|tag| [".ts\"", ".ts'", ".tsx\"", ".tsx'"].iter().any(|end| tag.contains(end)))
}

/// Limits on the resources that clients can use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The maximum number of connected clients.
    pub max_clients: usize,
    /// The longest datagram of a client, in bytes of payload; at most [`UDP_PAYLOAD_MAX`].
    pub max_datagram: usize,
    /// The length of the queue in each direction of a client; a full queue drops its oldest datagram.
    pub queue: NonZeroUsize,
    /// The bytes of datagrams that can wait in each direction of a client; a full queue drops its oldest datagrams.
    pub queue_bytes: NonZeroUsize,
    /// How long a datagram can wait before it is dropped.
    pub queue_age: Duration,
    /// How long a flow can be without a datagram in either direction.
    pub idle_timeout: Duration,
    /// How long a flow waits for a client whose connection was lost; zero: not at all.
    pub resume_within: Duration,
    /// How much a client may send; `None` is no limit.
    pub rate: Option<Rate>,
    /// The interval of pings. A client that sends nothing for three of them is disconnected.
    pub ping_interval: Duration,
    /// How long a TCP connection may take to send the header of a request, from its start or from the previous response.
    pub header_timeout: Duration,
}

impl Limits {
    /// The maximum number of TCP connections, including those of clients.
    ///
    /// Twice the number of clients, so that a full relay can still reject others with a close code, and some more for the
    /// static files of a small relay.
    #[must_use]
    pub const fn max_connections(&self) -> usize {
        self.max_clients.saturating_mul(2).saturating_add(64)
    }

    /// The limits of each flow.
    #[must_use]
    pub fn of_flow(&self) -> FlowLimits {
        let mut limits = FlowLimits::default();
        limits.max_datagram = self.max_datagram;
        limits.queue = self.queue;
        limits.queue_bytes = self.queue_bytes;
        limits.queue_age = self.queue_age;
        limits.idle_timeout = self.idle_timeout;
        limits.ping_interval = self.ping_interval;
        limits.resume_within = self.resume_within;
        limits.rate = self.rate;
        limits
    }
}

impl Default for Limits {
    fn default() -> Self {
        let flow = FlowLimits::default();
        Self {
            max_clients: 1000,
            max_datagram: flow.max_datagram,
            queue: flow.queue,
            queue_bytes: flow.queue_bytes,
            queue_age: flow.queue_age,
            idle_timeout: flow.idle_timeout,
            resume_within: flow.resume_within,
            rate: flow.rate,
            ping_interval: flow.ping_interval,
            header_timeout: Duration::from_secs(10),
        }
    }
}

/// An error in the configuration; the text is one line that says what to change.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// There is no target.
    #[error("no target given: add --target NAME=HOST:PORT")]
    NoTarget,
    /// Two targets have the same name.
    #[error("target '{0}' is given twice: give each --target a different name")]
    DuplicateTarget(TargetName),
    /// The host of a target cannot be resolved.
    #[error("cannot resolve '{}' of target '{name}' ({source}): check the host in --target", .address.as_str())]
    Unresolvable {
        /// The target.
        name: TargetName,
        /// The address that does not resolve.
        address: HostPort,
        /// The error of the resolver.
        source: io::Error,
    },
    /// The host of a target has no unicast address.
    #[error("'{}' of target '{name}' is not a unicast address: use the address of the game server in --target", .address.as_str())]
    UnusableAddress {
        /// The target.
        name: TargetName,
        /// The unusable address.
        address: HostPort,
    },
    /// Listening on the address fails.
    #[error(
        "cannot listen on {address} ({source}): choose another --listen, or stop the program that uses it"
    )]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The error of the system.
        source: io::Error,
    },
    /// The directory of static files does not exist.
    #[error("'{}' is not a directory: use an existing one for --serve", .0.display())]
    ServeDirectory(PathBuf),
    /// The directory of static files has no page at `/`.
    #[error("'{}' has no index.html that can be read ({source}): build the page, or use its directory for --serve", .directory.display())]
    ServeIndex {
        /// The directory.
        directory: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The directory has the sources of a page, which no browser runs.
    #[error(
        "the index.html of '{}' loads TypeScript, which no browser runs: build the page, and use the directory that the \
         build writes for --serve",
        .0.display()
    )]
    ServeSources(PathBuf),
    /// Other machines can connect, and no origins are configured.
    #[error(
        "{0} can be reached by other machines: choose the pages that may connect with --allow-origin ORIGIN ('*' means \
         any), or listen on 127.0.0.1"
    )]
    OriginsRequired(SocketAddr),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(listen: &str, targets: &[&str]) -> Config {
        let config = Config::new(listen.parse().unwrap());
        targets.iter().fold(config, |config, target| config.with_target(target.parse().unwrap()))
    }

    #[test]
    fn errors_are_found_before_anything_is_opened() {
        assert!(matches!(config("127.0.0.1:0", &[]).check(), Err(ConfigError::NoTarget)));
        let twice = config("127.0.0.1:0", &["a=127.0.0.1:1", "b=127.0.0.1:1", "a=127.0.0.1:2"]);
        assert!(matches!(twice.check(), Err(ConfigError::DuplicateTarget(name)) if name.as_str() == "a"));
        let public = config("0.0.0.0:0", &["a=127.0.0.1:1"]);
        assert!(matches!(public.check(), Err(ConfigError::OriginsRequired(_))));
        let mut missing = config("127.0.0.1:0", &["a=127.0.0.1:1"]);
        missing.serve = Some("no/such/directory".into());
        assert!(matches!(missing.check(), Err(ConfigError::ServeDirectory(_))));
    }

    #[test]
    fn the_sources_of_a_page_are_recognised() {
        for page in [
            r#"<script type="module" src="/src/main.ts"></script>"#,
            "<html><script>let a;</script>\n<script\n  src='./main.tsx'\n></script>",
        ] {
            assert!(loads_typescript(page), "{page}");
        }
        for page in [
            "",
            r#"<script type="module" src="/assets/main-ts.js"></script> <a href="main.ts">source</a>"#,
            r#"<script>load("main.ts")</script>"#,
        ] {
            assert!(!loads_typescript(page), "{page}");
        }
    }

    #[tokio::test]
    async fn targets_are_pinned_to_one_address() {
        let targets =
            config("127.0.0.1:0", &["a=[::ffff:127.0.0.1]:5", "b=[::1]:6"]).resolve().await.unwrap();
        assert_eq!(targets.find("a").unwrap().1.address, "127.0.0.1:5".parse().unwrap());
        assert_eq!(targets.find("b").unwrap().1.address, "[::1]:6".parse().unwrap());
        assert!(targets.find("c").is_none());
        let group = config("127.0.0.1:0", &["a=224.0.0.1:5"]).resolve().await;
        assert!(matches!(group, Err(ConfigError::UnusableAddress { .. })));
    }
}
