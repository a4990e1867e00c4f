//! A certificate from a certificate authority that speaks ACME, by `rustls-acme`.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::StreamExt;
use rustls::crypto::ring;
use rustls::server::ResolvesServerCert;
use rustls::{ClientConfig, RootCertStore};
use rustls_acme::acme::LETS_ENCRYPT_PRODUCTION_DIRECTORY;
use rustls_acme::caches::DirCache;
use rustls_acme::{AcmeConfig, AcmeState, EventOk};
use tokio::sync::Mutex;
use tracing::{info, warn};

use super::TlsError;
use crate::config::TlsConfig;

/// See the module.
pub(super) struct Acme {
    state: Mutex<AcmeState<io::Error>>,
    resolver: Arc<dyn ResolvesServerCert>,
    is_ready: AtomicBool,
}

impl Acme {
    pub(super) fn new(config: &TlsConfig) -> Result<Self, TlsError> {
        let contact = config.acme_contact.iter().map(|address| format!("mailto:{address}"));
        let directory = config.acme_directory.as_deref().unwrap_or(LETS_ENCRYPT_PRODUCTION_DIRECTORY);
        let acme = AcmeConfig::new_with_client_config(&config.acme_domains, Arc::new(client_config()?))
            .directory(directory)
            .contact(contact)
            .cache_option(config.acme_cache.clone().map(DirCache::new));
        if config.acme_cache.is_none() {
            warn!(
                "no --acme-cache: every start requests a new certificate, of which authorities give out few in a week"
            );
        }
        let state = acme.state();
        let resolver = state.resolver();
        Ok(Self { state: Mutex::new(state), resolver, is_ready: AtomicBool::new(false) })
    }

    /// What has the certificate in use, and the proof of a domain for the authority.
    pub(super) fn resolver(&self) -> Arc<dyn ResolvesServerCert> {
        Arc::clone(&self.resolver)
    }

    pub(super) fn is_ready(&self) -> bool {
        self.is_ready.load(Ordering::Relaxed)
    }

    /// Requests a certificate, and another one before it expires. Failures are tried again, later and later.
    pub(super) async fn run(&self) {
        let mut state = self.state.lock().await;
        while let Some(event) = state.next().await {
            match event {
                Ok(EventOk::DeployedCachedCert) => self.deployed("from the cache"),
                Ok(EventOk::DeployedNewCert) => self.deployed("from the authority"),
                Ok(EventOk::CertCacheStore | EventOk::AccountCacheStore) => {}
                Err(error) => warn!("no certificate by ACME yet: {error}"),
            }
        }
    }

    fn deployed(&self, source: &str) {
        self.is_ready.store(true, Ordering::Relaxed);
        info!(source, "certificate in use");
    }
}

impl fmt::Debug for Acme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acme").field("is_ready", &self.is_ready).finish_non_exhaustive()
    }
}

/// Trusts what the system trusts.
fn client_config() -> Result<ClientConfig, TlsError> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let reasons: Vec<String> = found.errors.iter().map(ToString::to_string).collect();
        return Err(TlsError::NoRoots(reasons.join(", ")));
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().map_err(TlsError::Library)?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}
