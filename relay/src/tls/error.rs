//! What can be wrong with a certificate.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::config::{ConfigError, TlsConfig};
#[cfg(feature = "acme")]
use crate::trust::TrustError;

/// What is wrong with a certificate; the text is one line that says what to change.
#[derive(Debug, Error)]
pub(crate) enum TlsError {
    /// A file cannot be read.
    #[error("cannot read '{}' ({source}): check the path and the permissions", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A file has no certificate in PEM form.
    #[error("'{}' has no certificate: give a file in PEM form, with the chain up to the authority", .0.display())]
    NoCertificate(PathBuf),
    /// A file has no private key in PEM form.
    #[error("'{}' has no private key: give a file in PEM form, without a passphrase", .0.display())]
    NoKey(PathBuf),
    /// A file is damaged.
    #[error("'{}' is not valid PEM ({reason}): write the file anew", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The certificate cannot be used.
    #[error("cannot use the certificate in '{}' ({reason}): check that the key belongs to it", .path.display())]
    Unusable {
        /// The file of the certificate.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// No certificate can be made for a name.
    #[error("cannot make a certificate ({0}): check the names")]
    SelfSigned(String),
    /// The authority could not be checked.
    #[cfg(feature = "acme")]
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// The relay was built without ACME.
    #[cfg(not(feature = "acme"))]
    #[error("this relay was built without ACME: build it with the feature `acme`, or give files")]
    NoAcme,
    /// The TLS library refuses its configuration.
    #[error("cannot set up TLS ({0})")]
    Library(rustls::Error),
}

impl TlsError {
    /// The file that it is about.
    fn path(&self) -> Option<&Path> {
        match self {
            Self::Read { path, .. } | Self::Damaged { path, .. } | Self::Unusable { path, .. } => Some(path),
            Self::NoCertificate(path) | Self::NoKey(path) => Some(path),
            Self::SelfSigned(_) | Self::Library(_) => None,
            #[cfg(feature = "acme")]
            Self::Trust(_) => None,
            #[cfg(not(feature = "acme"))]
            Self::NoAcme => None,
        }
    }

    /// The same as an error of this configuration.
    pub(crate) fn of(&self, config: &TlsConfig) -> ConfigError {
        let path = self.path();
        let key = match () {
            () if path.is_some() && path == config.key.as_deref() => "tls.key",
            () if config.certificate.is_some() => "tls.certificate",
            () if !config.acme_domains.is_empty() => "tls.acme_domains",
            () => "tls.self_signed",
        };
        ConfigError::Tls { key, reason: self.to_string() }
    }
}
