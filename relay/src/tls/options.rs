//! Which certificate the relay has, and what can be wrong with it.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Where the certificate of the relay comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TlsOptions {
    /// Files in PEM form. They are read again when they change.
    Files {
        /// The certificate of the relay, and behind it those that connect it with a certificate authority.
        certificate: PathBuf,
        /// The private key, as PKCS #8, PKCS #1 or SEC 1.
        key: PathBuf,
    },
    /// A certificate made at the start, for development: browsers warn of it.
    SelfSigned {
        /// The host names and addresses that it is for.
        names: Vec<String>,
    },
    /// A certificate authority that speaks ACME, such as Let's Encrypt.
    #[cfg(feature = "acme")]
    Acme(AcmeOptions),
}

/// How to get a certificate by ACME (RFC 8555), with proof of the domain over TLS (RFC 8737): the certificate authority
/// connects to port 443 of each domain, which must lead to the relay.
#[cfg(feature = "acme")]
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AcmeOptions {
    /// The domains that the certificate is for.
    pub domains: Vec<String>,
    /// The addresses that the certificate authority writes to, without `mailto:`.
    pub contacts: Vec<String>,
    /// The directory in which the account and certificates are kept, which has private keys. Without one every start
    /// requests a new certificate, of which authorities give out few in a week.
    pub cache: PathBuf,
    /// The URL of the authority's directory.
    pub directory: String,
}

#[cfg(feature = "acme")]
impl AcmeOptions {
    /// The directory of Let's Encrypt.
    pub const LETS_ENCRYPT: &str = "https://acme-v02.api.letsencrypt.org/directory";

    /// A certificate of Let's Encrypt for these domains.
    #[must_use]
    pub fn new(domains: Vec<String>, cache: PathBuf) -> Self {
        Self { domains, contacts: Vec::new(), cache, directory: Self::LETS_ENCRYPT.to_owned() }
    }
}

/// What is wrong with a certificate; the text is one line that says what to change.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TlsError {
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
    /// This machine trusts no certificate authority, so that none can be asked for a certificate.
    #[cfg(feature = "acme")]
    #[error("this machine trusts no certificate authority ({0}): install the package ca-certificates")]
    NoRoots(String),
    /// The relay was built without ACME.
    #[cfg(not(feature = "acme"))]
    #[error("this relay was built without ACME: build it with the feature `acme`, or give files")]
    NoAcme,
    /// The TLS library refuses its configuration.
    #[error("cannot set up TLS ({0})")]
    Library(rustls::Error),
}
