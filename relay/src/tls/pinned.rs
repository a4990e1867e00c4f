//! A certificate that a page knows by its hash, in place of an authority. Browsers take one that is ECDSA and valid for at
//! most 14 days.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustls::server::ResolvesServerCert;
use sha2::{Digest, Sha256};
use tokio::time::sleep;
use tracing::{info, warn};

use super::TlsError;
use super::certificate::Certificate;
use super::self_signed::{self, Validity};

/// Less than the 14 days of browsers, whose clocks may be wrong.
const VALIDITY: Validity =
    Validity { before: Duration::from_secs(24 * 60 * 60), after: Duration::from_secs(12 * 24 * 60 * 60) };

/// How long before its end a certificate is replaced: a relay that sleeps meanwhile has time to wake up.
const RENEWED_BEFORE: Duration = Duration::from_secs(6 * 24 * 60 * 60);

/// How often it is looked whether it has to be. A machine that sleeps, or whose clock is set, is no exception.
const CHECK_INTERVAL: Duration = Duration::from_secs(60);

/// See the module.
#[derive(Debug)]
pub(crate) struct Pinned {
    certificate: Arc<Certificate>,
    names: Vec<String>,
}

impl Pinned {
    /// A new certificate for these names.
    pub(super) fn new(names: &[String]) -> Result<Self, TlsError> {
        let made = self_signed::make(names, VALIDITY)?;
        Ok(Self { certificate: Arc::new(Certificate::new(made)), names: names.to_vec() })
    }

    pub(super) fn resolver(&self) -> Arc<dyn ResolvesServerCert> {
        Arc::clone(&self.certificate) as _
    }

    /// SHA-256 of the certificate for new connections.
    pub(super) fn hash(&self) -> [u8; 32] {
        let key = self.certificate.key();
        key.cert.first().map_or([0; 32], |certificate| Sha256::digest(certificate.as_ref()).into())
    }

    pub(super) async fn renew(&self) {
        loop {
            sleep(CHECK_INTERVAL).await;
            self.renew_at(SystemTime::now());
        }
    }

    /// Makes a new certificate if the present one is about to end.
    fn renew_at(&self, now: SystemTime) {
        let left = self.certificate.expires().duration_since(now).unwrap_or_default();
        if left > RENEWED_BEFORE {
            return;
        }
        match self_signed::make(&self.names, VALIDITY) {
            Ok(made) => {
                self.certificate.replace(made);
                info!("the certificate of WebTransport is renewed");
            }
            Err(error) => warn!(%error, "the certificate of WebTransport cannot be renewed"),
        }
    }
}

#[cfg(test)]
mod tests {
    use x509_parser::prelude::{FromDer, X509Certificate};

    use super::*;

    #[test]
    fn a_certificate_is_what_browsers_take_by_its_hash() {
        let pinned = Pinned::new(&["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
        let key = pinned.certificate.key();
        let (_, certificate) = X509Certificate::from_der(&key.cert[0]).unwrap();
        let validity = certificate.validity();
        let seconds = validity.not_after.timestamp() - validity.not_before.timestamp();
        assert!(seconds <= 13 * 24 * 60 * 60, "{seconds}");
        // id-ecPublicKey.
        assert_eq!(certificate.public_key().algorithm.algorithm.to_id_string(), "1.2.840.10045.2.1");
        assert_eq!(pinned.hash(), <[u8; 32]>::from(Sha256::digest(&key.cert[0])));
    }

    #[test]
    fn a_certificate_is_replaced_before_it_ends() {
        let pinned = Pinned::new(&["localhost".to_owned()]).unwrap();
        let (first, expires) = (pinned.hash(), pinned.certificate.expires());
        pinned.renew_at(SystemTime::now());
        assert_eq!(pinned.hash(), first);
        pinned.renew_at(expires - RENEWED_BEFORE + Duration::from_secs(1));
        assert_ne!(pinned.hash(), first);
    }
}
