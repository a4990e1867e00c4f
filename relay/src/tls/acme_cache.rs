//! The cache of certificates by ACME. `rustls-acme` does not report when they expire, so it is read from what passes here.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use async_trait::async_trait;
use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine};
use rakwire_udp::private_file;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls_acme::caches::DirCache;
use rustls_acme::{AccountCache, CertCache};
use sha2::{Digest, Sha256};
use tracing::warn;

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
    folder: Option<PathBuf>,
    expiry: Arc<Expiry>,
}

impl WatchedCache {
    pub(super) const fn new(folder: Option<PathBuf>, expiry: Arc<Expiry>) -> Self {
        Self { folder, expiry }
    }

    /// What reads the folder.
    fn reader(&self) -> Option<DirCache<&PathBuf>> {
        self.folder.as_ref().map(DirCache::new)
    }

    /// Writes what was found in a file anew if every user of this machine can read it, as other programs and older versions have made it.
    async fn keep_private(&self, kind: &str, names: &[String], directory: &str, found: Option<&Vec<u8>>) {
        let path = self.folder.as_ref().map(|folder| folder.join(file_name(kind, names, directory)));
        let Some((path, contents)) = path.filter(|path| private_file::is_exposed(path)).zip(found) else {
            return;
        };
        if let Err(error) = self.store(kind, names, directory, contents).await {
            warn!(file = %path.display(), %error, "every user of this machine can read a file with a secret, and its mode cannot be changed");
        }
    }

    /// Writes a file that [`DirCache`] reads, which would make it for others to read, too.
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

/// The name that [`DirCache`] gives to a file.
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
    use super::*;

    #[tokio::test]
    async fn what_is_kept_is_found_again_and_its_owner_alone_can_read_it() {
        let folder = std::env::temp_dir().join(format!("rakwire-relay-{}-acme-cache", std::process::id()));
        let cache = WatchedCache::new(Some(folder.clone()), Arc::default());
        let (names, directory) =
            (["a.example.org".to_owned(), "b.example.org".to_owned()], "https://ca.example/");
        cache.store_cert(&names, directory, b"pem").await.unwrap();
        cache.store_account(&names[..1], directory, b"key").await.unwrap();
        #[cfg(unix)]
        for file in fs::read_dir(&folder).unwrap() {
            // As older versions have made them.
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
