//! TLS of QUIC: the certificate of the relay, or one that pages know by its hash.

use std::sync::Arc;

use quinn::crypto::rustls::QuicServerConfig;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::server::ResolvesServerCert;
use rustls::version::TLS13;

use super::{Pinned, TlsError};

/// HTTP/3, which WebTransport is part of.
const HTTP_3: &[u8] = b"h3";

/// Where the certificate of QUIC comes from.
#[derive(Debug, Clone)]
pub(crate) enum QuicCertificate {
    /// The one of the relay, which an authority has signed.
    Authorized(Arc<dyn ResolvesServerCert>),
    /// One that the relay makes, and whose hash it tells.
    Pinned(Arc<Pinned>),
}

impl QuicCertificate {
    /// One that browsers trust, or else a new one for these names.
    pub(crate) fn new(
        authorized: Option<Arc<dyn ResolvesServerCert>>,
        names: &[String],
    ) -> Result<Self, TlsError> {
        match authorized {
            Some(resolver) => Ok(Self::Authorized(resolver)),
            None => Pinned::new(names).map(|pinned| Self::Pinned(Arc::new(pinned))),
        }
    }

    /// What a page has to be told of it: SHA-256 of certificates, none if it is signed by an authority.
    pub(crate) fn hashes(&self) -> Vec<[u8; 32]> {
        match self {
            Self::Authorized(_) => Vec::new(),
            Self::Pinned(pinned) => vec![pinned.hash()],
        }
    }

    /// Keeps it valid, for as long as it is polled.
    pub(crate) async fn renew(&self) {
        match self {
            Self::Authorized(_) => std::future::pending().await,
            Self::Pinned(pinned) => pinned.renew().await,
        }
    }
}

/// The configuration of TLS for QUIC.
pub(crate) fn quic_config(certificate: &QuicCertificate) -> Result<QuicServerConfig, TlsError> {
    let resolver = match certificate {
        QuicCertificate::Authorized(resolver) => Arc::clone(resolver),
        QuicCertificate::Pinned(pinned) => pinned.resolver(),
    };
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&TLS13])
        .map_err(TlsError::Library)?
        .with_no_client_auth()
        .with_cert_resolver(resolver);
    config.alpn_protocols = vec![HTTP_3.to_vec()];
    config.try_into().map_err(|_| TlsError::Library(rustls::Error::General("no cipher for QUIC".to_owned())))
}
