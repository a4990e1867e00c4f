//! The certificate in use, which can be replaced while connections use it. It comes from files, which are reloaded when
//! they change, or is self-signed.

use std::fs::{self, File};
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use thiserror::Error;
use tokio::time::{MissedTickBehavior, interval};
use tracing::{info, warn};
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::config::{ConfigError, TlsConfig};
#[cfg(feature = "acme")]
use crate::trust::TrustError;

/// A certificate with its key and its expiry.
#[derive(Debug, Clone)]
pub(super) struct Loaded {
    pub(super) key: Arc<CertifiedKey>,
    pub(super) expires: SystemTime,
}

/// The certificate in use, which can be replaced while connections use it.
#[derive(Debug)]
pub(super) struct Certificate(RwLock<Loaded>);

impl Certificate {
    pub(super) const fn new(loaded: Loaded) -> Self {
        Self(RwLock::new(loaded))
    }

    /// Uses this certificate for new connections.
    pub(super) fn replace(&self, loaded: Loaded) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = loaded;
    }

    /// Returns the certificate for new connections.
    pub(super) fn key(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner).key)
    }

    pub(super) fn expires(&self) -> SystemTime {
        self.0.read().unwrap_or_else(PoisonError::into_inner).expires
    }
}

impl ResolvesServerCert for Certificate {
    /// Returns the same certificate for every name, because clients that connect by address send no name.
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.key())
    }
}

/// Returns the earliest expiry in a chain of certificates, or an error if one is malformed.
pub(super) fn expiry<'c>(chain: impl IntoIterator<Item = &'c [u8]>) -> Result<SystemTime, String> {
    let ends = chain.into_iter().map(|der| {
        let (_, certificate) = X509Certificate::from_der(der).map_err(|error| error.to_string())?;
        let seconds = certificate.validity().not_after.timestamp();
        Ok(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds.try_into().unwrap_or_default()))
    });
    ends.collect::<Result<Vec<_>, String>>()?.into_iter().min().ok_or_else(|| "the chain is empty".to_owned())
}

/// The validity of a development certificate. It begins in the past, for clients with slow clocks.
const DEVELOPMENT: Validity =
    Validity { before: Duration::from_secs(24 * 60 * 60), after: Duration::from_secs(13 * 24 * 60 * 60) };

/// The validity of a certificate, as times before and after its creation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Validity {
    pub(super) before: Duration,
    pub(super) after: Duration,
}

/// Creates a development certificate for these names.
pub(super) fn make_for_development(names: &[String]) -> Result<Certificate, TlsError> {
    let made = make(names, DEVELOPMENT)?;
    warn!(
        names = names.join(" "),
        "the certificate is self-signed, for development only: browsers warn about it"
    );
    Ok(Certificate::new(made))
}

/// Creates a self-signed certificate with an ECDSA key for these names.
pub(super) fn make(names: &[String], validity: Validity) -> Result<Loaded, TlsError> {
    let error = |error: rcgen::Error| TlsError::SelfSigned(error.to_string());
    let now = SystemTime::now();
    let expires = now + validity.after;
    let mut params = CertificateParams::new(names.to_vec()).map_err(error)?;
    params.not_before = (now - validity.before).into();
    params.not_after = expires.into();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "rakwire-relay");
    let pair = KeyPair::generate().map_err(error)?;
    let made = params.self_signed(&pair).map_err(error)?;
    let secret = PrivateKeyDer::Pkcs8(pair.serialize_der().into());
    let key = CertifiedKey::from_der(vec![made.der().clone()], secret, &ring::default_provider())
        .map_err(TlsError::Library)?;
    Ok(Loaded { key: Arc::new(key), expires })
}

/// A problem with a certificate. The text is one line that says what to change.
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
    /// The file contains no certificate in PEM form.
    #[error("'{}' has no certificate: give a file in PEM form, with the chain up to the authority", .0.display())]
    NoCertificate(PathBuf),
    /// The file contains no private key in PEM form.
    #[error("'{}' has no private key: give a file in PEM form, without a passphrase", .0.display())]
    NoKey(PathBuf),
    /// The file is damaged.
    #[error("'{}' is not valid PEM ({reason}): create the file again", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// A description of the problem.
        reason: String,
    },
    /// The certificate is unusable.
    #[error("cannot use the certificate in '{}' ({reason}): check that the key belongs to it", .path.display())]
    Unusable {
        /// The file of the certificate.
        path: PathBuf,
        /// A description of the problem.
        reason: String,
    },
    /// No certificate can be created for a name.
    #[error("cannot create a certificate ({0}): check the names")]
    SelfSigned(String),
    /// The certificate authority cannot be verified.
    #[cfg(feature = "acme")]
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// The relay was built without ACME.
    #[cfg(not(feature = "acme"))]
    #[error("this relay was built without ACME: build it with the feature `acme`, or use certificate files")]
    NoAcme,
    /// The TLS library rejects the settings.
    #[error("cannot set up TLS ({0})")]
    Library(rustls::Error),
}

impl TlsError {
    /// Returns the file that the error is about.
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

    /// Converts this error into an error of the configuration.
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

/// The interval at which the files are compared with the loaded ones. Polling detects every way of replacing a file,
/// including the links of certbot and Kubernetes.
const WATCH_INTERVAL: Duration = Duration::from_secs(2);

/// A certificate that is reloaded when its files change.
#[derive(Debug)]
pub(super) struct Watch {
    current: Arc<Certificate>,
    state: Mutex<State>,
}

/// The known state of the files.
#[derive(Debug)]
struct State {
    certificate: PathBuf,
    key: PathBuf,
    /// The version of the files in use.
    used: Stamp,
    /// The version of the files that could not be used, so that each failure is logged once.
    failed: Option<Stamp>,
    reported: Option<Stamp>,
}

/// Identifies a version of both files by modification time, length and inode.
type Stamp = [Option<(SystemTime, u64, u64)>; 2];

impl Watch {
    pub(super) fn new(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let state = State::new(certificate, key);
        let current = Arc::new(Certificate::new(read(certificate, key)?));
        Ok(Self { current, state: Mutex::new(state) })
    }

    pub(super) fn certificate(&self) -> Arc<Certificate> {
        Arc::clone(&self.current)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads a certificate and its key from these files.
    pub(super) fn read(&self, certificate: &Path, key: &Path) -> Result<NewCertificate<'_>, TlsError> {
        // The state is recorded before the files are read, so that the next comparison detects a change of the files
        // while they were read.
        let state = State::new(certificate, key);
        Ok(NewCertificate { watch: self, loaded: read(certificate, key)?, state })
    }

    /// Reloads the files if they have changed. An error is returned once, and only if it occurs twice in a row, because
    /// the two files are replaced one after the other.
    fn poll(&self) -> Result<(), TlsError> {
        let (certificate, key, used) = {
            let state = self.state();
            (state.certificate.clone(), state.key.clone(), state.used)
        };
        let seen = stamp(&certificate, &key);
        if seen == used {
            return Ok(());
        }
        let error = match self.read(&certificate, &key) {
            Ok(new) => {
                new.apply();
                return Ok(());
            }
            Err(error) => error,
        };
        let mut state = self.state();
        if state.failed != Some(seen) {
            state.failed = Some(seen);
            return Ok(());
        }
        if state.reported == Some(seen) {
            return Ok(());
        }
        state.reported = Some(seen);
        Err(error)
    }

    pub(super) async fn run(&self) {
        let mut ticks = interval(WATCH_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut expired = None;
        loop {
            ticks.tick().await;
            let expires = self.current.expires();
            if expires <= SystemTime::now() && expired.replace(expires) != Some(expires) {
                let certificate = self.state().certificate.clone();
                warn!(certificate = %certificate.display(), "the certificate has expired, and clients refuse it: renew it");
            }
            if let Err(error) = self.poll() {
                warn!("the new certificate cannot be used, the old one stays in use: {error}");
            }
        }
    }
}

/// A certificate that was read and is not in use yet.
#[derive(Debug)]
#[must_use]
pub(crate) struct NewCertificate<'a> {
    watch: &'a Watch,
    loaded: Loaded,
    state: State,
}

impl NewCertificate<'_> {
    /// Uses the certificate for new connections, and watches its files from then on.
    pub(crate) fn apply(self) {
        let Self { watch, loaded, state } = self;
        info!(certificate = %state.certificate.display(), "certificate loaded");
        watch.current.replace(loaded);
        *watch.state() = state;
    }
}

impl State {
    fn new(certificate: &Path, key: &Path) -> Self {
        let used = stamp(certificate, key);
        Self { certificate: certificate.to_owned(), key: key.to_owned(), used, failed: None, reported: None }
    }
}

fn stamp(certificate: &Path, key: &Path) -> Stamp {
    [certificate, key].map(|path| {
        let metadata = fs::metadata(path).ok()?;
        Some((metadata.modified().ok()?, metadata.len(), number(&metadata)))
    })
}

#[cfg(unix)]
fn number(metadata: &fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(metadata)
}

#[cfg(not(unix))]
const fn number(_: &fs::Metadata) -> u64 {
    0
}

fn read(certificate: &Path, key: &Path) -> Result<Loaded, TlsError> {
    let chain = read_pem::<CertificateDer<'static>>(certificate)?;
    if chain.is_empty() {
        return Err(TlsError::NoCertificate(certificate.to_owned()));
    }
    let unusable = |reason| TlsError::Unusable { path: certificate.to_owned(), reason };
    let expires = expiry(chain.iter().map(AsRef::as_ref)).map_err(unusable)?;
    let secret = read_pem::<PrivateKeyDer<'static>>(key)?.into_iter().next();
    let secret = secret.ok_or_else(|| TlsError::NoKey(key.to_owned()))?;
    // This fails if the key does not belong to the certificate.
    let key = CertifiedKey::from_der(chain, secret, &ring::default_provider())
        .map_err(|error| unusable(error.to_string()))?;
    Ok(Loaded { key: Arc::new(key), expires })
}

/// Reads the sections of one kind from a PEM file. Other sections are skipped.
fn read_pem<T: PemObject>(path: &Path) -> Result<Vec<T>, TlsError> {
    let unreadable = |source: io::Error| TlsError::Read { path: path.to_owned(), source };
    let file = File::open(path).map_err(unreadable)?;
    let sections = T::pem_reader_iter(BufReader::new(file));
    sections
        .collect::<Result<Vec<T>, pem::Error>>()
        .map_err(|error| TlsError::Damaged { path: path.to_owned(), reason: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn self_signed_certificates_contain_names_and_addresses() {
        let made = make_for_development(&["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()])
            .unwrap();
        assert!(made.expires() > SystemTime::now());
        assert!(matches!(make_for_development(&["a\u{e9}".to_owned()]), Err(TlsError::SelfSigned(_))));
    }

    /// Writes a new certificate and its key.
    fn write(directory: &Path, name: &str) -> (PathBuf, PathBuf) {
        let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
        let (certificate, key) = (directory.join("chain.pem"), directory.join("key.pem"));
        fs::write(&certificate, made.cert.pem()).unwrap();
        fs::write(&key, made.key_pair.serialize_pem()).unwrap();
        (certificate, key)
    }

    fn directory(name: &str) -> PathBuf {
        let directory = std::env::temp_dir().join(format!("rakwire-relay-{}-{name}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        directory
    }

    fn served(watch: &Watch) -> Vec<u8> {
        watch.current.key().cert[0].to_vec()
    }

    #[test]
    fn changed_files_are_loaded_only_when_complete() {
        let directory = directory("changed");
        let (certificate, key) = write(&directory, "first.example");
        let watch = Watch::new(&certificate, &key).unwrap();
        let first = served(&watch);
        watch.poll().unwrap();
        assert_eq!(served(&watch), first, "unchanged files are not read again");

        let old_key = fs::read(&key).unwrap();
        write(&directory, "second.example");
        let new_key = fs::read(&key).unwrap();
        fs::write(&key, old_key).unwrap();
        watch.poll().unwrap();
        assert_eq!(served(&watch), first, "the key does not belong to the certificate");
        assert!(matches!(watch.poll(), Err(TlsError::Unusable { .. })), "reported when it persists");
        watch.poll().unwrap();

        fs::write(&key, new_key).unwrap();
        watch.poll().unwrap();
        assert_ne!(served(&watch), first);
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn missing_or_damaged_files_keep_the_old_certificate() {
        let directory = directory("gone");
        let (certificate, key) = write(&directory, "first.example");
        let watch = Watch::new(&certificate, &key).unwrap();
        let first = served(&watch);
        fs::write(&certificate, "-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----\n").unwrap();
        assert!(matches!(watch.read(&certificate, &key), Err(TlsError::Damaged { .. })));
        fs::write(&certificate, "").unwrap();
        assert!(matches!(watch.read(&certificate, &key), Err(TlsError::NoCertificate(_))));
        fs::remove_file(&certificate).unwrap();
        assert!(matches!(watch.read(&certificate, &key), Err(TlsError::Read { .. })));
        assert_eq!(served(&watch), first);
        write(&directory, "second.example");
        fs::write(&key, "").unwrap();
        assert!(matches!(watch.read(&certificate, &key), Err(TlsError::NoKey(_))));
        assert_eq!(served(&watch), first);
        fs::remove_dir_all(directory).unwrap();
    }
}
