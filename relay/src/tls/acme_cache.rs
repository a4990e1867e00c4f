//! Where certificates by ACME are kept. `rustls-acme` tells nobody when they expire, so it is read from what passes here.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use async_trait::async_trait;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls_acme::caches::DirCache;
use rustls_acme::{AccountCache, CertCache};

use super::certificate::expiry;

/// When the certificate that passed last expires.
#[derive(Debug, Default)]
pub(super) struct Expiry(Mutex<Option<SystemTime>>);

impl Expiry {
    pub(super) fn get(&self) -> Option<SystemTime> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads it from a chain in PEM, with its key. What cannot be read is not used either.
    fn read(&self, pem: &[u8]) {
        let chain: Vec<CertificateDer<'_>> = CertificateDer::pem_slice_iter(pem).flatten().collect();
        if let Ok(expires) = expiry(chain.iter().map(AsRef::as_ref)) {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(expires);
        }
    }
}

/// A folder, or nothing, in which certificates and the account are kept.
pub(super) struct WatchedCache {
    folder: Option<DirCache<PathBuf>>,
    expiry: Arc<Expiry>,
}

impl WatchedCache {
    pub(super) fn new(folder: Option<PathBuf>, expiry: Arc<Expiry>) -> Self {
        Self { folder: folder.map(DirCache::new), expiry }
    }
}

#[async_trait]
impl CertCache for WatchedCache {
    type EC = io::Error;

    async fn load_cert(&self, domains: &[String], directory: &str) -> io::Result<Option<Vec<u8>>> {
        let Some(folder) = &self.folder else { return Ok(None) };
        let found = folder.load_cert(domains, directory).await?;
        if let Some(pem) = &found {
            self.expiry.read(pem);
        }
        Ok(found)
    }

    async fn store_cert(&self, domains: &[String], directory: &str, pem: &[u8]) -> io::Result<()> {
        self.expiry.read(pem);
        match &self.folder {
            Some(folder) => folder.store_cert(domains, directory, pem).await,
            None => Ok(()),
        }
    }
}

#[async_trait]
impl AccountCache for WatchedCache {
    type EA = io::Error;

    async fn load_account(&self, contact: &[String], directory: &str) -> io::Result<Option<Vec<u8>>> {
        match &self.folder {
            Some(folder) => folder.load_account(contact, directory).await,
            None => Ok(None),
        }
    }

    async fn store_account(&self, contact: &[String], directory: &str, key: &[u8]) -> io::Result<()> {
        match &self.folder {
            Some(folder) => folder.store_account(contact, directory, key).await,
            None => Ok(()),
        }
    }
}
