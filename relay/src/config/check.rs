//! What a configuration must have beyond the right types.

use std::fs;
use std::path::Path;

use super::error::ConfigError;
use super::model::{AdmissionConfig, Config, TlsConfig};
use super::pages;
use crate::admission::{Bans, OriginPolicy};
use crate::token::VerifyingKey;

impl Config {
    /// Checks everything that does not need the network: that files exist and have what they should, and that options
    /// fit each other.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.targets.is_empty() {
            return Err(ConfigError::NoTarget);
        }
        self.serve.as_deref().map_or(Ok(()), pages::check_pages)?;
        self.origins()?;
        self.bans()?;
        self.token_keys()?;
        self.check_tls()
    }

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

    /// Which pages may connect.
    pub(crate) fn origins(&self) -> Result<OriginPolicy, ConfigError> {
        let AdmissionConfig { allow_origins, allow_any_origin, .. } = &self.admission;
        if *allow_any_origin {
            return Ok(OriginPolicy::Any);
        }
        OriginPolicy::new(self.listen, allow_origins).ok_or(ConfigError::OriginsRequired(self.listen))
    }

    fn check_tls(&self) -> Result<(), ConfigError> {
        let TlsConfig { certificate, key, acme_domains, self_signed, .. } = &self.tls;
        let contradiction = |key, reason| Err(ConfigError::Contradiction { key, reason });
        let ways = [certificate.is_some(), !acme_domains.is_empty(), *self_signed];
        match (certificate, key) {
            (Some(_), None) => {
                contradiction("tls.certificate", "a certificate needs its key: add --tls-key FILE")
            }
            (None, Some(_)) => {
                contradiction("tls.key", "a key needs its certificate: add --tls-certificate FILE")
            }
            _ if ways.into_iter().filter(|&way| way).count() > 1 => contradiction(
                "tls",
                "there is one source of certificates: use --tls-certificate, --acme-domain or --tls-self-signed",
            ),
            _ => Ok(()),
        }
    }
}

fn read(key: &'static str, path: &Path) -> Result<String, ConfigError> {
    fs::read_to_string(path).map_err(|error| file_error(key, path, None, format!("cannot be read ({error})")))
}

fn file_error(key: &'static str, path: &Path, line: Option<usize>, reason: String) -> ConfigError {
    ConfigError::File { key, path: path.to_owned(), line, reason }
}
