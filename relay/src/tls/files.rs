//! A certificate in files: reading them, and noticing when they change.

use std::fs::{self, File};
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use tokio::time::{MissedTickBehavior, interval};
use tracing::{info, warn};

use super::TlsError;
use super::certificate::{Certificate, Loaded, expiry};

/// How often the files are compared with what was read. Polling sees every way in which a file is replaced, the links of
/// certbot and Kubernetes too.
const WATCH_INTERVAL: Duration = Duration::from_secs(2);

/// A certificate that follows its files.
#[derive(Debug)]
pub(super) struct Watch {
    current: Arc<Certificate>,
    state: Mutex<State>,
}

/// What is known of the files.
#[derive(Debug)]
struct State {
    certificate: PathBuf,
    key: PathBuf,
    /// Those in use.
    used: Stamp,
    /// Those that could not be used, so that each of them is logged once.
    failed: Option<Stamp>,
    reported: Option<Stamp>,
}

/// What changes when files change: for each file its time of modification, length and number.
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

    /// Reads these files now.
    pub(super) fn read(&self, certificate: &Path, key: &Path) -> Result<NewCertificate<'_>, TlsError> {
        // Before the files are read: a change in between is seen by the next comparison.
        let state = State::new(certificate, key);
        Ok(NewCertificate { watch: self, loaded: read(certificate, key)?, state })
    }

    /// Reads the files if they have changed. What is wrong with them is returned once, and only if it is the same twice:
    /// whoever replaces two files does so one after the other.
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
                warn!("the old certificate stays in use: {error}");
            }
        }
    }
}

/// A certificate that has been read and is not in use yet.
#[derive(Debug)]
#[must_use]
pub(crate) struct NewCertificate<'a> {
    watch: &'a Watch,
    loaded: Loaded,
    state: State,
}

impl NewCertificate<'_> {
    /// Uses it for new connections, and follows its files from now on.
    pub(crate) fn apply(self) {
        let Self { watch, loaded, state } = self;
        info!(certificate = %state.certificate.display(), "certificate read");
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
    // Fails if the key does not belong to the certificate.
    let key = CertifiedKey::from_der(chain, secret, &ring::default_provider())
        .map_err(|error| unusable(error.to_string()))?;
    Ok(Loaded { key: Arc::new(key), expires })
}

/// The sections of a kind in a PEM file; those of other kinds are passed over.
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
    fn changed_files_are_used_and_half_of_a_change_is_not() {
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
        assert!(matches!(watch.poll(), Err(TlsError::Unusable { .. })), "told when it stays so");
        watch.poll().unwrap();

        fs::write(&key, new_key).unwrap();
        watch.poll().unwrap();
        assert_ne!(served(&watch), first);
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn files_that_are_gone_or_damaged_leave_the_old_certificate() {
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
