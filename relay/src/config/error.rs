//! Errors of a configuration.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use thiserror::Error;

use crate::target::{AddressError, HostPort, TargetName};

/// An error in the configuration; the text is one line that says what to change.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The certificate cannot be used.
    #[error("{0}")]
    Tls(String),
    /// There is no target.
    #[error("no target given: add --target NAME=HOST:PORT")]
    NoTarget,
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
    /// The host of a target has no address that a target may have.
    #[error("'{}' of target '{name}' {}", .address.as_str(), .reason)]
    UnusableAddress {
        /// The target.
        name: TargetName,
        /// The unusable address.
        address: HostPort,
        /// Why, and what to change.
        reason: AddressError,
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
    /// Listening on the admin address fails.
    #[error(
        "cannot listen on {address} ({source}): choose another --admin-listen, or stop the program that uses it"
    )]
    AdminListen {
        /// The address.
        address: SocketAddr,
        /// The error of the system.
        source: io::Error,
    },
    /// Listening on the address of the front fails.
    #[error(
        "cannot listen on UDP {address} ({source}): choose another --udp-listen, or stop the program that uses it"
    )]
    UdpListen {
        /// The address.
        address: SocketAddr,
        /// The error of the system.
        source: io::Error,
    },
    /// Listening on the address for WebTransport fails.
    #[error(
        "cannot listen on UDP {address} ({source}): choose another --webtransport-listen, stop the program that uses it, or \
         leave WebTransport out with --webtransport off"
    )]
    WebTransportListen {
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
         any) or admit all with --allow-any-origin, or listen on 127.0.0.1"
    )]
    OriginsRequired(SocketAddr),
    /// A file that the configuration names cannot be used.
    #[error("{}{}: {reason}", .path.display(), .line.map(|line| format!(":{line}")).unwrap_or_default())]
    File {
        /// The key that names the file.
        key: &'static str,
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: Option<usize>,
        /// What is wrong.
        reason: String,
    },
    /// The levels of the log cannot be read.
    #[error("'{0}' is not a log level: write it as info, or info,hyper=debug")]
    LogLevel(String),
    /// Two options contradict each other.
    #[error("{reason}")]
    Contradiction {
        /// One of the keys.
        key: &'static str,
        /// What contradicts what.
        reason: &'static str,
    },
}

impl ConfigError {
    /// The key that the error is about, as the names of its tables and its own; empty if there is none.
    pub(super) fn key(&self) -> Vec<String> {
        let key = match self {
            Self::NoTarget => "",
            Self::Tls(_) => "tls",
            Self::LogLevel(_) => "log.level",
            Self::Unresolvable { name, .. } | Self::UnusableAddress { name, .. } => {
                return vec!["targets".to_owned(), name.as_str().to_owned(), "address".to_owned()];
            }
            Self::Listen { .. } | Self::OriginsRequired(_) => "listen",
            Self::AdminListen { .. } => "admin.listen",
            Self::UdpListen { .. } => "udp.listen",
            Self::WebTransportListen { .. } => "webtransport.listen",
            Self::ServeDirectory(_) | Self::ServeIndex { .. } | Self::ServeSources(_) => "serve",
            Self::File { key, .. } | Self::Contradiction { key, .. } => key,
        };
        key.split('.').filter(|part| !part.is_empty()).map(str::to_owned).collect()
    }
}
