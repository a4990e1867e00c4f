//! A certificate from an ACME authority, obtained by `rustls-acme`, and its cache. The library does not report the
//! expiry of certificates, so it is read from the cached data.

use std::fmt;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{self, Arc, PoisonError};
use std::time::SystemTime;

use async_trait::async_trait;
use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine};
use futures_util::StreamExt;
use rakwire_udp::{printable, private_file};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::server::ResolvesServerCert;
use rustls_acme::acme::{AcmeError, Identifier, LETS_ENCRYPT_PRODUCTION_DIRECTORY, Problem};
use rustls_acme::caches::DirCache;
use rustls_acme::{AccountCache, AcmeConfig, AcmeState, CertCache, EventError, EventOk, OrderError};
use sha2::{Digest, Sha256};
use tokio::sync::Mutex;
use tracing::{info, warn};

use super::TlsError;
use super::certificate::expiry;
use crate::config::TlsConfig;
use crate::trust::client_config;

/// A certificate from an ACME authority, by `rustls-acme`.
pub(super) struct Acme {
    state: Mutex<AcmeState<io::Error>>,
    resolver: Arc<dyn ResolvesServerCert>,
    expiry: Arc<Expiry>,
    is_ready: AtomicBool,
}

impl Acme {
    pub(super) fn new(config: &TlsConfig) -> Result<Self, TlsError> {
        let contact = config.acme_contact.iter().map(|address| format!("mailto:{address}"));
        let directory = config.acme_directory.as_deref().unwrap_or(LETS_ENCRYPT_PRODUCTION_DIRECTORY);
        let expiry = Arc::new(Expiry::default());
        let acme = AcmeConfig::new_with_client_config(&config.acme_domains, Arc::new(client_config(None)?))
            .directory(directory)
            .contact(contact)
            .cache(WatchedCache::new(config.acme_cache.clone(), Arc::clone(&expiry)));
        if config.acme_cache.is_none() {
            warn!(
                "no tls.acme_cache: every start requests a new certificate, and authorities issue only a few per week"
            );
        }
        let state = acme.state();
        let resolver = state.resolver();
        Ok(Self { state: Mutex::new(state), resolver, expiry, is_ready: AtomicBool::new(false) })
    }

    /// Returns the resolver of the certificate in use, which also answers the authority's domain validation.
    pub(super) fn resolver(&self) -> Arc<dyn ResolvesServerCert> {
        Arc::clone(&self.resolver)
    }

    pub(super) fn is_ready(&self) -> bool {
        self.is_ready.load(Ordering::Relaxed)
    }

    /// Returns the expiry of the certificate in use, once there is one.
    pub(super) fn expires(&self) -> Option<SystemTime> {
        self.expiry.get().filter(|_| self.is_ready())
    }

    /// Requests a certificate, and renews it before it expires. Failed requests are retried with growing pauses.
    pub(super) async fn run(&self) {
        let mut state = self.state.lock().await;
        while let Some(event) = state.next().await {
            match event {
                Ok(EventOk::DeployedCachedCert) => self.deployed("from the cache"),
                Ok(EventOk::DeployedNewCert) => self.deployed("from the authority"),
                Ok(EventOk::CertCacheStore | EventOk::AccountCacheStore) => {}
                Err(error) => warn!("{}", printable(&explain(&error))),
            }
        }
    }

    fn deployed(&self, source: &str) {
        self.is_ready.store(true, Ordering::Relaxed);
        info!(source, "certificate in use");
    }
}

/// Formats an error for the operator. The library formats some of its errors with `Debug`.
fn explain(error: &EventError<io::Error, io::Error>) -> String {
    let said = |problem: Option<&Problem>| {
        let detail = problem.and_then(|problem| problem.detail.clone());
        detail.unwrap_or_else(|| "no reason given".to_owned())
    };
    let reason = match error {
        EventError::AccountCacheLoad(error) | EventError::CertCacheLoad(error) => {
            return format!("tls.acme_cache cannot be read ({error}): check the permissions of its files");
        }
        EventError::AccountCacheStore(error) | EventError::CertCacheStore(error) => {
            return format!(
                "tls.acme_cache cannot be written ({error}): the next start requests a new certificate"
            );
        }
        EventError::Order(OrderError::BadAuth(auth)) => {
            let Identifier::Dns(domain) = &auth.identifier;
            let problem = auth.challenges.iter().find_map(|challenge| challenge.error.as_ref());
            format!("the authority did not reach this relay at port 443 of {domain}: {}", said(problem))
        }
        EventError::Order(OrderError::BadOrder(order) | OrderError::ProcessingTimeout(order)) => {
            format!("the authority refuses the order: {}", said(order.error.as_ref()))
        }
        EventError::Order(OrderError::Acme(AcmeError::HttpRequest(error))) => {
            format!("the authority cannot be reached: {}", innermost(&error.to_string()))
        }
        EventError::Order(error) => error.to_string(),
        EventError::CachedCertParse(error) | EventError::NewCertParse(error) => error.to_string(),
    };
    format!("no certificate from the ACME authority yet, the relay tries again: {reason}")
}

/// Returns the innermost text of an error that is formatted with `Debug`.
fn innermost(shown: &str) -> &str {
    [r#"\"detail\":\""#, r#"\"detail\": \""#, "error: \"", "message: \""]
        .iter()
        .find_map(|begin| shown.rsplit_once(begin)?.1.split(['"', '\\']).next())
        .unwrap_or(shown)
}

impl fmt::Debug for Acme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acme").field("is_ready", &self.is_ready).finish_non_exhaustive()
    }
}

/// The expiry of the last certificate seen.
#[derive(Debug, Default)]
struct Expiry(sync::Mutex<Option<SystemTime>>);

impl Expiry {
    fn get(&self) -> Option<SystemTime> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the expiry from a PEM chain with its key. Unreadable certificates are ignored, as they are by the library.
    fn read(&self, pem: &[u8]) {
        let chain: Vec<CertificateDer<'_>> = CertificateDer::pem_slice_iter(pem).flatten().collect();
        if let Ok(expires) = expiry(chain.iter().map(AsRef::as_ref)) {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(expires);
        }
    }
}

/// The cache of the account and the certificates: a directory, or none.
struct WatchedCache {
    folder: Option<PathBuf>,
    expiry: Arc<Expiry>,
}

impl WatchedCache {
    const fn new(folder: Option<PathBuf>, expiry: Arc<Expiry>) -> Self {
        Self { folder, expiry }
    }

    /// Returns a reader of the directory.
    fn reader(&self) -> Option<DirCache<&PathBuf>> {
        self.folder.as_ref().map(DirCache::new)
    }

    /// Restricts a cached file that every user of this machine can read. Other programs and older versions create such
    /// files.
    async fn keep_private(&self, kind: &str, names: &[String], directory: &str, found: Option<&Vec<u8>>) {
        let path = self.folder.as_ref().map(|folder| folder.join(file_name(kind, names, directory)));
        let Some((path, contents)) = path.filter(|path| private_file::is_exposed(path)).zip(found) else {
            return;
        };
        if let Err(error) = self.store(kind, names, directory, contents).await {
            warn!(file = %path.display(), %error, "every user of this machine can read a file with a secret, and its mode cannot be changed");
        }
    }

    /// Writes a file in the format of [`DirCache`], which itself would make it readable by others.
    async fn store(&self, kind: &str, names: &[String], directory: &str, contents: &[u8]) -> io::Result<()> {
        let Some(folder) = self.folder.clone() else { return Ok(()) };
        let (name, contents) = (file_name(kind, names, directory), contents.to_owned());
        let write = move || {
            fs::create_dir_all(&folder)?;
            private_file::replace(folder.join(name), &contents)
        };
        tokio::task::spawn_blocking(write).await.map_err(io::Error::other)?
    }
}

/// Returns the name that [`DirCache`] gives to a file.
fn file_name(kind: &str, names: &[String], directory: &str) -> String {
    let mut digest = Sha256::new();
    for name in names {
        digest.update(name);
        digest.update([0]);
    }
    digest.update(directory);
    format!("cached_{kind}_{}", BASE64_URL_SAFE_NO_PAD.encode(digest.finalize()))
}

#[async_trait]
impl CertCache for WatchedCache {
    type EC = io::Error;

    async fn load_cert(&self, domains: &[String], directory: &str) -> io::Result<Option<Vec<u8>>> {
        let Some(folder) = self.reader() else { return Ok(None) };
        let found = folder.load_cert(domains, directory).await?;
        if let Some(pem) = &found {
            self.expiry.read(pem);
        }
        self.keep_private("cert", domains, directory, found.as_ref()).await;
        Ok(found)
    }

    async fn store_cert(&self, domains: &[String], directory: &str, pem: &[u8]) -> io::Result<()> {
        self.expiry.read(pem);
        self.store("cert", domains, directory, pem).await
    }
}

#[async_trait]
impl AccountCache for WatchedCache {
    type EA = io::Error;

    async fn load_account(&self, contact: &[String], directory: &str) -> io::Result<Option<Vec<u8>>> {
        let Some(folder) = self.reader() else { return Ok(None) };
        let found = folder.load_account(contact, directory).await?;
        self.keep_private("account", contact, directory, found.as_ref()).await;
        Ok(found)
    }

    async fn store_account(&self, contact: &[String], directory: &str, key: &[u8]) -> io::Result<()> {
        self.store("account", contact, directory, key).await
    }
}

#[cfg(test)]
mod tests {
    use rustls_acme::acme::{Auth, AuthStatus, Challenge, ChallengeType};

    use super::*;

    #[test]
    fn library_errors_are_shown_without_debug_syntax() {
        for (shown, said) in [
            (
                r#"http error: ConnectError(TcpConnect(Custom { kind: Uncategorized, error: "no such name" }))"#,
                "no such name",
            ),
            (
                r#"http error: ConnectError(TcpConnect(Os { code: 111, kind: ConnectionRefused, message: "Connection refused" }))"#,
                "Connection refused",
            ),
            (
                r#"non 2xx http status: 429 "{\"type\":\"urn:ietf:params:acme:error:rateLimited\",\"detail\":\"too many certificates\"}""#,
                "too many certificates",
            ),
            ("could not determine host from url", "could not determine host from url"),
        ] {
            assert_eq!(innermost(shown), said);
        }
    }

    #[test]
    fn a_failed_domain_validation_is_reported_with_its_reason() {
        let problem = Problem { typ: None, detail: Some("connection refused".to_owned()) };
        let typ = ChallengeType::TlsAlpn01;
        let challenge = Challenge { typ, url: String::new(), token: String::new(), error: Some(problem) };
        let identifier = Identifier::Dns("play.example.org".to_owned());
        let auth = Auth { status: AuthStatus::Invalid, identifier, challenges: vec![challenge] };
        assert_eq!(
            explain(&EventError::Order(OrderError::BadAuth(auth))),
            "no certificate from the ACME authority yet, the relay tries again: the authority did not reach this \
             relay at port 443 of \
             play.example.org: connection refused"
        );
        let full = explain(&EventError::CertCacheStore(io::ErrorKind::StorageFull.into()));
        assert!(full.starts_with("tls.acme_cache cannot be written (no storage space)"), "{full}");
    }

    #[tokio::test]
    async fn the_cache_is_persistent_and_private() {
        let folder = std::env::temp_dir().join(format!("rakwire-relay-{}-acme-cache", std::process::id()));
        let cache = WatchedCache::new(Some(folder.clone()), Arc::default());
        let (names, directory) =
            (["a.example.org".to_owned(), "b.example.org".to_owned()], "https://ca.example/");
        cache.store_cert(&names, directory, b"pem").await.unwrap();
        cache.store_account(&names[..1], directory, b"key").await.unwrap();
        #[cfg(unix)]
        for file in fs::read_dir(&folder).unwrap() {
            // Older versions created the files with this mode.
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
            fs::set_permissions(file.unwrap().path(), mode).unwrap();
        }
        let again = WatchedCache::new(Some(folder.clone()), Arc::default());
        assert_eq!(again.load_cert(&names, directory).await.unwrap().unwrap(), b"pem");
        assert_eq!(again.load_account(&names[..1], directory).await.unwrap().unwrap(), b"key");
        assert_eq!(again.load_cert(&names[..1], directory).await.unwrap(), None);
        for file in fs::read_dir(&folder).unwrap() {
            assert!(!private_file::is_exposed(file.unwrap().path()));
        }
        fs::remove_dir_all(folder).unwrap();
    }
}
