//! A certificate for development, made at the start.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;
use rustls::sign::CertifiedKey;
use tracing::warn;

use super::TlsError;
use super::certificate::{Certificate, Loaded};

/// How long it is valid. Browsers take certificates by their hash for at most 14 days.
const VALID: Duration = Duration::from_secs(13 * 24 * 60 * 60);

/// Clocks of other machines may be behind.
const BEFORE: Duration = Duration::from_secs(24 * 60 * 60);

/// A new certificate for these names, of which none is trusted by anybody.
pub(super) fn make(names: &[String]) -> Result<Certificate, TlsError> {
    let error = |error: rcgen::Error| TlsError::SelfSigned(error.to_string());
    let now = SystemTime::now();
    let expires = now + VALID;
    let mut params = CertificateParams::new(names.to_vec()).map_err(error)?;
    params.not_before = (now - BEFORE).into();
    params.not_after = expires.into();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "rakwire-relay for development");
    let pair = KeyPair::generate().map_err(error)?;
    let made = params.self_signed(&pair).map_err(error)?;
    let secret = PrivateKeyDer::Pkcs8(pair.serialize_der().into());
    let key = CertifiedKey::from_der(vec![made.der().clone()], secret, &ring::default_provider())
        .map_err(TlsError::Library)?;
    warn!(names = names.join(" "), "the certificate is made for development: browsers warn of it");
    Ok(Certificate::new(Loaded { key: Arc::new(key), expires }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_addresses_can_be_certified_and_nonsense_cannot() {
        let made = make(&["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()]).unwrap();
        assert!(made.expires() > SystemTime::now());
        assert!(matches!(make(&["a\u{e9}".to_owned()]), Err(TlsError::SelfSigned(_))));
    }
}
