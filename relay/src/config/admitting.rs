//! Whom a configuration lets in, with what the files say that it names.

use std::fmt;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use rakwire_udp::private_file;
use tracing::warn;

use super::error::ConfigError;
use super::model::{AdmissionConfig, Config, WebTransportMode};
use crate::admission::{Bans, OriginPolicy};
use crate::token::VerifyingKey;

/// A file with a secret that every user of this machine can read. Its text says what to change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExposedFile {
    /// The option with the secret, or with the name of the file.
    pub key: &'static str,
    /// The file.
    pub path: PathBuf,
}

/// What is wrong with such a file, and what to change.
const EXPOSED: &str = "every user of this machine can read a file with a secret: change its mode to 0600, or to 0640 for a group";

impl ExposedFile {
    /// Logs it as a warning.
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

/// The file, if every user of this machine can read it.
pub(super) fn exposed(key: &'static str, path: &Path) -> Option<ExposedFile> {
    private_file::is_exposed(path).then(|| ExposedFile { key, path: path.to_owned() })
}

impl Config {
    /// The banned addresses, as the file has them now.
    pub(crate) fn bans(&self) -> Result<Bans, ConfigError> {
        let Some(path) = &self.admission.bans else { return Ok(Bans::default()) };
        let key = "admission.bans";
        let text = read(key, path)?;
        Bans::parse(&text).map_err(|(line, reason)| file_error(key, path, Some(line), reason))
    }

    /// The keys that verify tokens, as their files have them now.
    pub(crate) fn token_keys(&self) -> Result<Vec<VerifyingKey>, ConfigError> {
        let name = "tokens.keys";
        let key = |path| {
            let key = VerifyingKey::from_text(&read(name, path)?);
            key.map_err(|error| file_error(name, path, None, error.to_string()))
        };
        self.tokens.keys.iter().map(|path| key(path)).collect()
    }

    /// The files with secrets that every user of this machine can read, of those that options name.
    #[must_use]
    pub fn exposed_files(&self) -> Vec<ExposedFile> {
        let is_secret = |path: &&PathBuf| {
            // A public key is for everybody.
            let key = read("tokens.keys", path).ok().and_then(|text| VerifyingKey::from_text(&text).ok());
            key.is_some_and(|key| key.is_secret())
        };
        let of_tokens = self.tokens.keys.iter().filter(is_secret).map(|path| ("tokens.keys", path));
        let others = [
            ("tls.key", &self.tls.key),
            ("udp.cookie_keys", &self.udp.cookie_keys),
            ("webrtc.certificate", &self.webrtc.certificate),
        ];
        let others = others.into_iter().filter_map(|(key, path)| Some((key, path.as_ref()?)));
        others.chain(of_tokens).filter_map(|(key, path)| exposed(key, path)).collect()
    }

    /// Which pages may connect.
    pub(crate) fn origins(&self) -> Result<OriginPolicy, ConfigError> {
        let AdmissionConfig { allow_origins, allow_any_origin, trusted_proxies, .. } = &self.admission;
        if *allow_any_origin {
            return Ok(OriginPolicy::Any);
        }
        // A proxy has clients on other machines, wherever it is itself.
        if allow_origins.is_empty() && !trusted_proxies.is_empty() {
            return Err(ConfigError::Contradiction {
                key: "admission.trusted_proxies",
                reason: "clients on other machines come by a proxy: choose the pages that may connect with \
                         {admission.allow_origins} ('*' means any), or admit all with {admission.allow_any_origin}",
            });
        }
        let policy_on =
            |address| OriginPolicy::new(address, allow_origins).ok_or(ConfigError::OriginsRequired(address));
        // Both addresses let the same clients in, so that other machines may reach neither or origins are needed.
        self.webtransport_listen().map_or(Ok(()), |address| policy_on(address).map(drop))?;
        // A name is checked with each of its addresses once it is resolved.
        policy_on(self.listen.address().unwrap_or_else(|| (Ipv4Addr::LOCALHOST, 0).into()))
    }

    /// The UDP address for WebTransport that is configured, if it is served.
    const fn webtransport_listen(&self) -> Option<SocketAddr> {
        match self.webtransport.mode {
            WebTransportMode::Off => None,
            WebTransportMode::Auto | WebTransportMode::On => self.webtransport.listen,
        }
    }
}

pub(super) fn read(key: &'static str, path: &Path) -> Result<String, ConfigError> {
    fs::read_to_string(path).map_err(|error| file_error(key, path, None, format!("cannot be read ({error})")))
}

pub(super) fn file_error(key: &'static str, path: &Path, line: Option<usize>, reason: String) -> ConfigError {
    ConfigError::File { key, path: path.to_owned(), line, reason }
}
