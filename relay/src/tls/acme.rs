//! A certificate from a certificate authority that speaks ACME, by `rustls-acme`.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use futures_util::StreamExt;
use rustls::server::ResolvesServerCert;
use rustls_acme::acme::LETS_ENCRYPT_PRODUCTION_DIRECTORY;
use rustls_acme::{AcmeConfig, AcmeState, EventOk};
use tokio::sync::Mutex;
use tracing::{info, warn};

use super::TlsError;
use super::acme_cache::{Expiry, WatchedCache};
use crate::config::TlsConfig;
use crate::trust::client_config;

/// See the module.
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
                "no --acme-cache: every start requests a new certificate, of which authorities give out few in a week"
            );
        }
        let state = acme.state();
        let resolver = state.resolver();
        Ok(Self { state: Mutex::new(state), resolver, expiry, is_ready: AtomicBool::new(false) })
    }

    /// What has the certificate in use, and the proof of a domain for the authority.
    pub(super) fn resolver(&self) -> Arc<dyn ResolvesServerCert> {
        Arc::clone(&self.resolver)
    }

    pub(super) fn is_ready(&self) -> bool {
        self.is_ready.load(Ordering::Relaxed)
    }

    /// When the certificate in use expires, once there is one.
    pub(super) fn expires(&self) -> Option<SystemTime> {
        self.expiry.get().filter(|_| self.is_ready())
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
