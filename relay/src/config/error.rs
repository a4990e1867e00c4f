//! Configuration errors, and warnings about the permissions of files.

use std::error::Error;
use std::fmt;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use rakwire_udp::private_file;
use tracing::warn;

use crate::addresses::{AddressError, HostPort, ListenAddress, TargetName};

/// The path of a key in the file: the names of its tables, then the name of the key.
pub(super) type KeyPath = Vec<String>;

/// A function that returns the name of an option as its source writes it: a key of the file, or a flag.
pub(super) type Naming<'a> = &'a dyn Fn(&str) -> String;

const SOURCES: &str = "has an index.html that loads TypeScript, which no browser runs: build the page, and use the directory that \
                       the build writes";

/// An error in the configuration. Its text is one line that says what to change, and calls options by their keys in the
/// file.
#[derive(Debug)]
#[non_exhaustive]
pub enum ConfigError {
    /// The certificate is unusable.
    Tls {
        /// The key of the option.
        key: &'static str,
        /// A description of the problem.
        reason: String,
    },
    /// No target is configured.
    NoTarget,
    /// The host of a target cannot be resolved.
    Unresolvable {
        /// The name of the target.
        name: TargetName,
        /// The address that does not resolve.
        address: HostPort,
        /// The key of the address in the table of the target.
        key: &'static str,
        /// The error of the resolver.
        source: io::Error,
    },
    /// The host of a target has no address that is allowed.
    UnusableAddress {
        /// The name of the target.
        name: TargetName,
        /// The address that resolves to no usable address.
        address: HostPort,
        /// The key of the address in the table of the target.
        key: &'static str,
        /// The reason, and the necessary change.
        reason: AddressError,
    },
    /// Listening on the address fails.
    Listen {
        /// The address that the relay cannot listen on.
        address: SocketAddr,
        /// The error of the system.
        source: io::Error,
    },
    /// Listening on the admin address fails.
    AdminListen {
        /// The address that the relay cannot listen on.
        address: SocketAddr,
        /// The error of the system.
        source: io::Error,
    },
    /// The name to listen on has no address, or it cannot be resolved.
    ListenUnresolvable {
        /// The name and the port.
        listen: ListenAddress,
        /// The error of the resolver.
        source: io::Error,
    },
    /// Listening on the address of the front fails.
    UdpListen {
        /// The address that the relay cannot listen on.
        address: SocketAddr,
        /// The error of the system.
        source: io::Error,
    },
    /// Listening on the address for WebTransport fails.
    WebTransportListen {
        /// The address that the relay cannot listen on.
        address: SocketAddr,
        /// The error of the system.
        source: io::Error,
    },
    /// The front listens on the address of its target.
    FrontOnTarget {
        /// The name of the target.
        name: TargetName,
        /// The address of the front and of the target.
        address: SocketAddr,
    },
    /// A target has the address on which the relay itself receives WebTransport.
    TargetOnWebTransport {
        /// The name of the target.
        name: TargetName,
        /// The address of WebTransport and of the target.
        address: SocketAddr,
        /// The key of the address in the table of the target.
        key: &'static str,
    },
    /// The directory of static files does not exist.
    ServeDirectory(PathBuf),
    /// The directory of static files has no page at `/`.
    ServeIndex {
        /// The configured directory.
        directory: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The directory contains the sources of a page, which browsers cannot run.
    ServeSources(PathBuf),
    /// Other machines can connect, and no origins are configured.
    OriginsRequired(SocketAddr),
    /// A file named in the configuration is unusable.
    File {
        /// The key that names the file.
        key: &'static str,
        /// The path of the file.
        path: PathBuf,
        /// The line, counted from 1.
        line: Option<usize>,
        /// A description of the problem.
        reason: String,
    },
    /// The log levels are malformed.
    LogLevel(String),
    /// No ACME authority issues certificates for this name.
    AcmeDomain {
        /// The configured domain name.
        domain: String,
        /// The reason why it is not a host name, and the accepted form.
        reason: &'static str,
    },
    /// A value is below a required minimum.
    Below {
        /// The key of the value.
        key: &'static str,
        /// The configured value.
        value: String,
        /// The key that determines the minimum.
        other: &'static str,
        /// The required minimum.
        least: String,
        /// The reason for the minimum.
        reason: &'static str,
    },
    /// Two options contradict each other.
    Contradiction {
        /// The key of one of the two options.
        key: &'static str,
        /// The contradiction, with the keys of options in braces.
        reason: &'static str,
    },
}

impl ConfigError {
    /// Returns the paths of the keys that the error concerns; empty if there are none.
    pub(super) fn keys(&self) -> Vec<KeyPath> {
        let keys: &[&str] = match self {
            Self::NoTarget => &[],
            Self::LogLevel(_) => &["log.level"],
            Self::Unresolvable { name, key, .. }
            | Self::UnusableAddress { name, key, .. }
            | Self::TargetOnWebTransport { name, key, .. } => {
                return vec![["targets", name.as_str(), key].map(str::to_owned).into()];
            }
            Self::Listen { .. } | Self::ListenUnresolvable { .. } | Self::OriginsRequired(_) => &["listen"],
            Self::AdminListen { .. } => &["admin.listen"],
            Self::UdpListen { .. } | Self::FrontOnTarget { .. } => &["udp.listen"],
            Self::WebTransportListen { .. } => &["webtransport.listen", "webtransport.mode"],
            Self::ServeDirectory(_) | Self::ServeIndex { .. } | Self::ServeSources(_) => &["serve"],
            Self::AcmeDomain { .. } => &["tls.acme_domains"],
            Self::Below { key, other, .. } => &[key, other],
            Self::Tls { key, .. } | Self::File { key, .. } | Self::Contradiction { key, .. } => &[key],
        };
        keys.iter().map(|key| key.split('.').map(str::to_owned).collect()).collect()
    }

    /// Returns the description and the necessary change, in terms of the key with index `at`.
    pub(super) fn reason(&self, at: usize, name: Naming<'_>) -> String {
        match self {
            Self::Tls { reason, .. } => reason.clone(),
            Self::NoTarget => format!("no target given: add {}", name("targets")),
            Self::Unresolvable { name: target, address, source, .. } => {
                let address = address.as_str();
                format!("cannot resolve '{address}' of target '{target}' ({source}): check the host name")
            }
            Self::UnusableAddress { name: target, address, reason, .. } => {
                format!("'{}' of target '{target}' {reason}", address.as_str())
            }
            Self::Listen { address, source } => cannot_listen("", *address, source, &name("listen")),
            Self::ListenUnresolvable { listen, source } => {
                format!("cannot resolve '{listen}' ({source}): check the name, or listen on an IP address")
            }
            Self::AdminListen { address, source } => {
                cannot_listen("", *address, source, &name("admin.listen"))
            }
            Self::UdpListen { address, source } => {
                cannot_listen("UDP ", *address, source, &name("udp.listen"))
            }
            Self::WebTransportListen { address, source } => {
                let otherwise = cannot_listen("UDP ", *address, source, &name("webtransport.listen"));
                format!("{otherwise}, or disable WebTransport with {} off", name("webtransport.mode"))
            }
            Self::FrontOnTarget { name: target, address } => own_address(OWN_FRONT, target, *address, name),
            Self::TargetOnWebTransport { name: target, address, .. } => {
                own_address(OWN_WEBTRANSPORT, target, *address, name)
            }
            Self::ServeDirectory(directory) => {
                no_page(directory, "is not a directory: use an existing one", &name("serve"))
            }
            Self::ServeIndex { directory, source } => {
                let reason = "build the page, or use its directory";
                let reason = format_args!("has no index.html that can be read ({source}): {reason}");
                no_page(directory, reason, &name("serve"))
            }
            Self::ServeSources(directory) => no_page(directory, SOURCES, &name("serve")),
            Self::OriginsRequired(address) => format!(
                "{address} can be reached by other machines: choose the pages that may connect with {} ('*' means any) or \
                 admit all with {}, or listen on 127.0.0.1",
                name("admission.allow_origins"),
                name("admission.allow_any_origin")
            ),
            Self::File { path, line, reason, .. } => {
                let line = line.map(|line| format!(":{line}")).unwrap_or_default();
                format!("{}{line}: {reason}", path.display())
            }
            Self::LogLevel(level) => {
                format!("'{level}' is not a log level: write it as info, or info,hyper=debug")
            }
            Self::AcmeDomain { domain, reason } => format!("'{domain}' {reason}"),
            Self::Below { value, other, least, reason, .. } if at == 0 => {
                format!("{value} is below {} ({least}): {reason}", name(other))
            }
            Self::Below { key, value, least, reason, .. } => {
                format!("{least} is above {} ({value}): {reason}", name(key))
            }
            Self::Contradiction { reason, .. } => named(reason, name),
        }
    }
}

/// The parts of the relay that may conflict with a target's address, each with the option that sets its address.
const OWN_FRONT: [&str; 2] = ["the front", "udp.listen"];
const OWN_WEBTRANSPORT: [&str; 2] = ["WebTransport of the relay", "webtransport.listen"];

/// Returns the error for a target with an address of the relay itself, and the necessary change.
fn own_address(
    [own, option]: [&str; 2],
    target: &TargetName,
    address: SocketAddr,
    name: Naming<'_>,
) -> String {
    let option = name(option);
    format!(
        "{own} and target '{target}' have the same address ({address}), so the relay would send to itself: choose \
         another {option}"
    )
}

/// Returns the error for a directory of static files without an index page.
fn no_page(directory: &Path, reason: impl fmt::Display, option: &str) -> String {
    format!("'{}' {reason} for {option}", directory.display())
}

/// Returns the hint for an address on which listening fails.
fn cannot_listen(protocol: &str, address: SocketAddr, source: &io::Error, option: &str) -> String {
    format!(
        "cannot listen on {protocol}{address} ({source}): choose another {option}, or stop the program that uses it"
    )
}

/// Replaces the keys in braces by their names.
pub(super) fn named(text: &str, name: Naming<'_>) -> String {
    let mut parts = text.split('{');
    let mut all = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (key, rest) = part.split_once('}').unwrap_or((part, ""));
        all.push_str(&name(key));
        all.push_str(rest);
    }
    all
}

/// Formats a key as it is written in a file.
pub(super) fn dotted(path: &[String]) -> String {
    let is_bare = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    let written = |part: &String| if is_bare(part) { part.clone() } else { format!("{part:?}") };
    path.iter().map(written).collect::<Vec<_>>().join(".")
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = self.reason(0, &str::to_owned);
        match self.keys().first() {
            Some(key) => write!(f, "{}: {reason}", dotted(key)),
            None => f.write_str(&reason),
        }
    }
}

impl Error for ConfigError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Unresolvable { source, .. }
            | Self::Listen { source, .. }
            | Self::ListenUnresolvable { source, .. }
            | Self::AdminListen { source, .. }
            | Self::UdpListen { source, .. }
            | Self::WebTransportListen { source, .. }
            | Self::ServeIndex { source, .. } => Some(source),
            Self::Tls { .. }
            | Self::NoTarget
            | Self::UnusableAddress { .. }
            | Self::FrontOnTarget { .. }
            | Self::TargetOnWebTransport { .. }
            | Self::ServeDirectory(_)
            | Self::ServeSources(_)
            | Self::OriginsRequired(_)
            | Self::File { .. }
            | Self::LogLevel(_)
            | Self::AcmeDomain { .. }
            | Self::Below { .. }
            | Self::Contradiction { .. } => None,
        }
    }
}

/// A file with a secret that every user of this machine can read. Its text says what to change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExposedFile {
    /// The option that contains the secret, or the name of the file.
    pub key: &'static str,
    /// The path of the file.
    pub path: PathBuf,
}

/// The warning about a file with a secret, and the remedy.
const EXPOSED: &str = "every user of this machine can read this file, which contains a secret: change its mode to 0600, or to 0640 for a group";

impl ExposedFile {
    /// Logs a warning about the file.
    pub fn log(&self) {
        let (key, file) = (self.key, self.path.display());
        warn!(key, %file, "{EXPOSED}");
    }
}

impl fmt::Display for ExposedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {EXPOSED}", self.path.display(), self.key)
    }
}

/// Returns the file if every user of this machine can read it.
pub(super) fn exposed(key: &'static str, path: &Path) -> Option<ExposedFile> {
    private_file::is_exposed(path).then(|| ExposedFile { key, path: path.to_owned() })
}

pub(super) fn read(key: &'static str, path: &Path) -> Result<String, ConfigError> {
    fs::read_to_string(path).map_err(|error| {
        file_error(key, path, None, format!("cannot be read ({error}): check the path and the permissions"))
    })
}

pub(super) fn file_error(key: &'static str, path: &Path, line: Option<usize>, reason: String) -> ConfigError {
    ConfigError::File { key, path: path.to_owned(), line, reason }
}
