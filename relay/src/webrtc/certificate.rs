//! The certificate of the relay towards browsers, which no authority has signed: a page knows its fingerprint.

use std::str::FromStr;

use dimpl::DtlsCertificate;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, PKCS_ECDSA_P256_SHA256};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use thiserror::Error;

use super::fingerprint::Fingerprint;

/// A certificate for ECDSA on P-256, and its private key.
#[derive(Debug, Clone)]
pub(crate) struct Certificate {
    pub(super) dtls: DtlsCertificate,
    fingerprint: Fingerprint,
    pem: String,
}

/// What is wrong with a certificate.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum CertificateError {
    #[error("it is not a PEM file with one private key (PKCS #8) and one certificate")]
    Pem,
    #[error("a certificate cannot be made ({0})")]
    Make(String),
}

impl Certificate {
    /// A new one.
    pub(crate) fn make() -> Result<Self, CertificateError> {
        let failed = |error: rcgen::Error| CertificateError::Make(error.to_string());
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(failed)?;
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, "rakwire-relay");
        let certificate = params.self_signed(&key).map_err(failed)?;
        let pem = key.serialize_pem() + &certificate.pem();
        Ok(Self::new(certificate.der(), key.serialize_der(), pem))
    }

    /// It as a text that can be read again.
    pub(crate) fn pem(&self) -> &str {
        &self.pem
    }

    pub(crate) const fn fingerprint(&self) -> &Fingerprint {
        &self.fingerprint
    }

    fn new(certificate: &[u8], private_key: Vec<u8>, pem: String) -> Self {
        let fingerprint = Fingerprint::of(certificate);
        Self { dtls: DtlsCertificate { certificate: certificate.to_vec(), private_key }, fingerprint, pem }
    }
}

impl FromStr for Certificate {
    type Err = CertificateError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let key = PrivatePkcs8KeyDer::from_pem_slice(text.as_bytes()).map_err(|_| CertificateError::Pem)?;
        let certificate =
            CertificateDer::from_pem_slice(text.as_bytes()).map_err(|_| CertificateError::Pem)?;
        Ok(Self::new(&certificate, key.secret_pkcs8_der().to_vec(), text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_the_same_when_it_is_read_again() {
        let made = Certificate::make().unwrap();
        let read: Certificate = made.pem().parse().unwrap();
        assert_eq!(read.fingerprint(), made.fingerprint());
        assert_eq!(read.dtls.private_key, made.dtls.private_key);
        assert_ne!(Certificate::make().unwrap().fingerprint(), made.fingerprint());
    }

    #[test]
    fn texts_without_both_parts_are_refused() {
        let made = Certificate::make().unwrap();
        let (key, certificate) = made.pem().split_at(made.pem().find("-----BEGIN CERT").unwrap());
        for text in ["", key, certificate, "-----BEGIN"] {
            assert_eq!(text.parse::<Certificate>().err(), Some(CertificateError::Pem), "{text}");
        }
    }
}
