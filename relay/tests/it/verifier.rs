//! Certificate verification for clients that trust no authority.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};
use sha2::{Digest, Sha256};

/// The accepted certificates.
#[derive(Debug)]
pub(crate) enum Accept {
    /// Any certificate. Signatures are not verified, either: webpki rejects the critical extension in the certificates
    /// of RFC 8737.
    Anyone,
    /// The certificate with this hash, as pinned by a browser.
    Sha256(Vec<u8>),
}

impl ServerCertVerifier for Accept {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match self {
            Self::Sha256(hash) if Sha256::digest(certificate)[..] != hash[..] => {
                Err(CertificateError::UnknownIssuer.into())
            }
            Self::Sha256(_) | Self::Anyone => Ok(ServerCertVerified::assertion()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        match self {
            Self::Anyone => Ok(HandshakeSignatureValid::assertion()),
            Self::Sha256(_) => verify_tls12_signature(message, certificate, signature, &algorithms()),
        }
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        match self {
            Self::Anyone => Ok(HandshakeSignatureValid::assertion()),
            Self::Sha256(_) => verify_tls13_signature(message, certificate, signature, &algorithms()),
        }
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        algorithms().supported_schemes()
    }
}

fn algorithms() -> WebPkiSupportedAlgorithms {
    ring::default_provider().signature_verification_algorithms
}
