//! The certificates that the relay trusts as a client of certificate authorities, other relays and the server store.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{self, PemObject};
use rustls::{ClientConfig, RootCertStore};
use thiserror::Error;

/// The reason why certificates cannot be verified. The text is one line that says what to change.
#[derive(Debug, Error)]
pub(crate) enum TrustError {
    /// A file cannot be read.
    #[error("cannot read '{}' ({source}): check the path and the permissions", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The file contains no certificate in PEM form.
    #[error("'{}' has no certificate: give a file in PEM form, with the authority", .0.display())]
    NoCertificate(PathBuf),
    /// The file is damaged.
    #[error("'{}' is not valid PEM ({reason}): create the file again", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The description of the damage.
        reason: String,
    },
    /// This machine trusts no certificate authority, so no server can be verified.
    #[error("this machine trusts no certificate authority ({0}): install the package ca-certificates")]
    NoRoots(String),
    /// The TLS library rejects the settings.
    #[error("cannot set up TLS ({0})")]
    Library(rustls::Error),
}

/// Creates a client configuration that trusts the authorities in a PEM file, or those of the system.
pub(crate) fn client_config(ca: Option<&Path>) -> Result<ClientConfig, TrustError> {
    let roots = match ca {
        Some(path) => roots_of(path)?,
        None => roots_of_system()?,
    };
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().map_err(TrustError::Library)?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

fn roots_of_system() -> Result<RootCertStore, TrustError> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let reasons: Vec<String> = found.errors.iter().map(ToString::to_string).collect();
        return Err(TrustError::NoRoots(reasons.join(", ")));
    }
    Ok(roots)
}

fn roots_of(path: &Path) -> Result<RootCertStore, TrustError> {
    let failed = |error| {
        if let pem::Error::Io(source) = error {
            return TrustError::Read { path: path.to_owned(), source };
        }
        TrustError::Damaged { path: path.to_owned(), reason: error.to_string() }
    };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(failed)? {
        let unusable =
            |error: rustls::Error| TrustError::Damaged { path: path.to_owned(), reason: error.to_string() };
        roots.add(certificate.map_err(failed)?).map_err(unusable)?;
    }
    if roots.is_empty() { Err(TrustError::NoCertificate(path.to_owned())) } else { Ok(roots) }
}
