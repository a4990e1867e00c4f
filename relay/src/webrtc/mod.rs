//! WebRTC data channels without signalling and without IO (`docs/webrtc.md`).
//!
//! A page that knows the relay's certificate fingerprint, address and port can create both session descriptions itself.
//! `Endpoint` answers the page's connectivity checks, keeps no state until the page has answered one of the relay's
//! checks, and dispatches datagrams to each `Session`.
//!
//! A session is SCTP over DTLS with two data channels, one for control messages and one for datagrams. The certificate
//! is self-signed. The client's request, and the reason for a close, are additional messages on the control channel.

mod counters;
mod endpoint;
mod session;
mod stun;
mod validated;

use std::str::FromStr;

use dimpl::DtlsCertificate;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, PKCS_ECDSA_P256_SHA256};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use serde::Deserialize;
use serde_json::json;
use thiserror::Error;

pub use self::counters::{WebRtcCounters, WebRtcDropReason, WebRtcSnapshot};
pub(crate) use self::endpoint::{DatagramEvent, Endpoint};
#[cfg(test)]
pub(crate) use self::session::tests::{Version, client};
pub(crate) use self::session::{
    ACKNOWLEDGEMENT_TIMEOUT, HANDSHAKE_TIMEOUT, Session, SessionEvent, SessionSettings,
};
pub(crate) use self::stun::DatagramKind;
pub use self::stun::Fingerprint;
#[cfg(test)]
pub(crate) use self::stun::Password;
#[cfg(test)]
pub(crate) use self::stun::tests::{check, page_answer, username};
pub(crate) use self::validated::ChallengeKey;

/// A certificate for ECDSA on P-256 with its private key.
#[derive(Debug, Clone)]
pub(crate) struct Certificate {
    dtls: DtlsCertificate,
    fingerprint: Fingerprint,
    pem: String,
}

/// The reason why a certificate is unusable.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum CertificateError {
    #[error("it is not a PEM file with one private key (PKCS #8) and one certificate")]
    Pem,
    #[error("a certificate cannot be created ({0})")]
    Make(String),
}

impl Certificate {
    /// Creates a new certificate.
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

    /// Returns the certificate and key as PEM, from which they can be read back.
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

/// The maximum length of a client's first message in bytes. A token takes a few hundred bytes.
const LONGEST: usize = 8 * 1024;

/// The request in a client's first message, `{"type":"open","target":"game"}`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct OpenRequest {
    #[serde(rename = "type")]
    kind: String,
    /// The name of the target.
    pub(crate) target: Option<String>,
    /// A signed token, if the relay requires one.
    pub(crate) token: Option<SecretText>,
    /// The secret of an earlier flow.
    pub(crate) resume: Option<SecretText>,
    /// If present, the flow opens with the client's first datagram.
    pub(crate) defer: Option<String>,
    /// The client's choice for the case that the game server is unreachable.
    pub(crate) unreachable: Option<String>,
}

/// A text that `Debug` does not show.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(crate) struct SecretText(pub(crate) String);

impl std::fmt::Debug for SecretText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SecretText")
    }
}

/// The error for a first message that is not a request for a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the first control message must be a JSON object with the type 'open'")]
pub(crate) struct NoRequest;

impl OpenRequest {
    /// Parses the first message. Unknown members are ignored.
    pub(crate) fn read(message: &[u8]) -> Result<Self, NoRequest> {
        if message.len() > LONGEST {
            return Err(NoRequest);
        }
        let request: Self = serde_json::from_slice(message).map_err(|_| NoRequest)?;
        if request.kind == "open" { Ok(request) } else { Err(NoRequest) }
    }
}

/// Formats the last message to a client, with a WebSocket's close code and text.
pub(crate) fn close_message(code: u16, reason: &str) -> String {
    json!({ "type": "close", "code": code, "reason": reason }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_round_trips_as_pem() {
        let made = Certificate::make().unwrap();
        let read: Certificate = made.pem().parse().unwrap();
        assert_eq!(read.fingerprint(), made.fingerprint());
        assert_eq!(read.dtls.private_key, made.dtls.private_key);
        assert_ne!(Certificate::make().unwrap().fingerprint(), made.fingerprint());
    }

    #[test]
    fn pem_without_certificate_or_key_is_refused() {
        let made = Certificate::make().unwrap();
        let (key, certificate) = made.pem().split_at(made.pem().find("-----BEGIN CERT").unwrap());
        for text in ["", key, certificate, "-----BEGIN"] {
            assert_eq!(text.parse::<Certificate>().err(), Some(CertificateError::Pem), "{text}");
        }
    }

    #[test]
    fn an_open_request_is_parsed() {
        let message = br#"{"type":"open","target":"game","token":"a.b.c","resume":"xyz","later":1}"#;
        let request = OpenRequest::read(message).unwrap();
        assert_eq!(request.target.as_deref(), Some("game"));
        assert_eq!((request.token.unwrap().0, request.resume.unwrap().0), ("a.b.c".into(), "xyz".into()));
        let request = OpenRequest::read(br#"{"type":"open"}"#).unwrap();
        assert_eq!((request.target, request.token, request.resume), (None, None, None));
    }

    #[test]
    fn malformed_open_requests_are_refused() {
        let long = format!(r#"{{"type":"open","target":"{}"}}"#, "a".repeat(LONGEST));
        let deep = "[".repeat(LONGEST);
        for message in
            ["", "{}", "[]", r#"{"type":"flow"}"#, r#"{"type":"open","target":1}"#, "\u{0}", &long, &deep]
        {
            assert_eq!(OpenRequest::read(message.as_bytes()), Err(NoRequest), "{message:.20}");
        }
        assert_eq!(OpenRequest::read(&[0xff; 9]), Err(NoRequest));
    }

    #[test]
    fn debug_output_hides_secrets_and_texts_are_escaped() {
        let request = OpenRequest::read(br#"{"type":"open","token":"hidden","resume":"hidden"}"#).unwrap();
        assert!(!format!("{request:?}").contains("hidden"));
        let message: serde_json::Value = serde_json::from_str(&close_message(4404, "no '\"'")).unwrap();
        assert_eq!(message, serde_json::json!({ "type": "close", "code": 4404, "reason": "no '\"'" }));
    }
}
