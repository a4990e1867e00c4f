//! The certificate in use, which can be replaced while connections use it.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use x509_parser::prelude::{FromDer, X509Certificate};

/// A certificate with its key, and when it expires.
#[derive(Debug, Clone)]
pub(super) struct Loaded {
    pub(super) key: Arc<CertifiedKey>,
    pub(super) expires: SystemTime,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Certificate(RwLock<Loaded>);

impl Certificate {
    pub(super) const fn new(loaded: Loaded) -> Self {
        Self(RwLock::new(loaded))
    }

    /// Gives all further connections this one.
    pub(super) fn replace(&self, loaded: Loaded) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = loaded;
    }

    /// The one for further connections.
    pub(super) fn key(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner).key)
    }

    pub(super) fn expires(&self) -> SystemTime {
        self.0.read().unwrap_or_else(PoisonError::into_inner).expires
    }
}

impl ResolvesServerCert for Certificate {
    /// The same certificate for every name: clients that know the relay by its address send none.
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.key())
    }
}

/// When the first of some certificates expires; an error if one cannot be read.
pub(super) fn expiry<'c>(chain: impl IntoIterator<Item = &'c [u8]>) -> Result<SystemTime, String> {
    let ends = chain.into_iter().map(|der| {
        let (_, certificate) = X509Certificate::from_der(der).map_err(|error| error.to_string())?;
        let seconds = certificate.validity().not_after.timestamp();
        Ok(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds.try_into().unwrap_or_default()))
    });
    ends.collect::<Result<Vec<_>, String>>()?.into_iter().min().ok_or_else(|| "there is none".to_owned())
}
