//! Certificates that nobody has signed.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;
use rustls::sign::CertifiedKey;
use tracing::warn;

use super::TlsError;
use super::certificate::{Certificate, Loaded};

/// How long a certificate for development is valid. Clocks of other machines may be behind.
const DEVELOPMENT: Validity =
    Validity { before: Duration::from_secs(24 * 60 * 60), after: Duration::from_secs(13 * 24 * 60 * 60) };

/// How long a certificate is valid, before and after it is made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Validity {
    pub(super) before: Duration,
    pub(super) after: Duration,
}

/// A certificate for development with these names.
pub(super) fn make_for_development(names: &[String]) -> Result<Certificate, TlsError> {
    let made = make(names, DEVELOPMENT)?;
    warn!(names = names.join(" "), "the certificate is made for development: browsers warn of it");
    Ok(Certificate::new(made))
}

/// A new certificate with a key for ECDSA, for these names, which is trusted by nobody.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_addresses_can_be_certified_and_nonsense_cannot() {
        let made = make_for_development(&["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()])
            .unwrap();
        assert!(made.expires() > SystemTime::now());
        assert!(matches!(make_for_development(&["a\u{e9}".to_owned()]), Err(TlsError::SelfSigned(_))));
    }
}
