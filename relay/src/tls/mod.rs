//! TLS on the relay's listener and as a client, by rustls. Also TLS for QUIC, with the relay's certificate or one that
//! pages pin by its hash.
//!
//! The certificate comes from files, which are reloaded when they change, or from an ACME authority, or is generated at
//! startup for development. New connections use a new certificate; open connections keep theirs.

#[cfg(feature = "acme")]
mod acme;
mod certificate;

use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use quinn::crypto::rustls::QuicServerConfig;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::server::ResolvesServerCert;
use rustls::version::TLS13;
use sha2::{Digest, Sha256};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::sleep;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tracing::{info, warn};

pub(crate) use self::certificate::TlsError;
use self::certificate::{Certificate, NewCertificate, Validity, Watch};
use crate::config::TlsConfig;

/// The only protocol offered. HTTP/2 is omitted, because a WebSocket over it needs an extension that axum does not
/// support.
const HTTP_1: &[u8] = b"http/1.1";

/// The protocol that an ACME authority offers when it validates a domain (RFC 8737).
const ACME_CHALLENGE: &[u8] = b"acme-tls/1";

/// TLS on the relay's listener and as a client, by rustls.
///
/// The certificate comes from files, which are reloaded when they change, or from an ACME authority, or is generated at
/// startup for development. New connections use a new certificate; open connections keep theirs.
#[derive(Debug)]
pub(crate) struct Tls {
    config: Arc<ServerConfig>,
    resolver: Arc<dyn ResolvesServerCert>,
    source: Source,
}

/// The source of the certificate.
#[derive(Debug)]
enum Source {
    Files(Watch),
    SelfSigned(Arc<Certificate>),
    #[cfg(feature = "acme")]
    Acme(acme::Acme),
}

impl Tls {
    /// Reads or creates the certificate, if TLS is configured. An ACME certificate is requested once [`Tls::renew`]
    /// runs. `names` are the names of a development certificate.
    pub(crate) fn new(config: &TlsConfig, names: &[String]) -> Result<Option<Self>, TlsError> {
        if let (Some(certificate), Some(key)) = (&config.certificate, &config.key) {
            let watch = Watch::new(certificate, key)?;
            let certificate = watch.certificate();
            return Self::with(certificate, vec![HTTP_1.to_vec()], Source::Files(watch)).map(Some);
        }
        if config.self_signed {
            let made = Arc::new(certificate::make_for_development(names)?);
            let source = Source::SelfSigned(Arc::clone(&made));
            return Self::with(made, vec![HTTP_1.to_vec()], source).map(Some);
        }
        if config.acme_domains.is_empty() {
            return Ok(None);
        }
        Self::with_acme(config).map(Some)
    }

    /// Reads the certificate from its files. For other sources, checks that this relay can obtain a certificate.
    pub(crate) fn check(config: &TlsConfig) -> Result<(), TlsError> {
        match (&config.certificate, &config.key) {
            (Some(certificate), Some(key)) => Watch::new(certificate, key).map(drop),
            #[cfg(not(feature = "acme"))]
            _ if !config.acme_domains.is_empty() => Err(TlsError::NoAcme),
            _ => Ok(()),
        }
    }

    #[cfg(feature = "acme")]
    fn with_acme(config: &TlsConfig) -> Result<Self, TlsError> {
        let acme = acme::Acme::new(config)?;
        let protocols = vec![HTTP_1.to_vec(), ACME_CHALLENGE.to_vec()];
        Self::with(acme.resolver(), protocols, Source::Acme(acme))
    }

    #[cfg(not(feature = "acme"))]
    const fn with_acme(_: &TlsConfig) -> Result<Self, TlsError> {
        Err(TlsError::NoAcme)
    }

    fn with(
        resolver: Arc<dyn ResolvesServerCert>,
        protocols: Vec<Vec<u8>>,
        source: Source,
    ) -> Result<Self, TlsError> {
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Library)?
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(&resolver));
        config.alpn_protocols = protocols;
        // Without tickets, a returning client would need a full handshake once other clients have filled the small
        // session cache.
        config.ticketer = ring::Ticketer::new().map_err(TlsError::Library)?;
        Ok(Self { config: Arc::new(config), resolver, source })
    }

    /// Returns the certificate for QUIC, if browsers can verify it without a hash.
    pub(crate) fn authorized(&self) -> Option<Arc<dyn ResolvesServerCert>> {
        match &self.source {
            Source::SelfSigned(_) => None,
            Source::Files(_) => Some(Arc::clone(&self.resolver)),
            #[cfg(feature = "acme")]
            Source::Acme(_) => Some(Arc::clone(&self.resolver)),
        }
    }

    /// Returns true if clients can connect. It takes a while to obtain the first ACME certificate.
    pub(crate) fn is_ready(&self) -> bool {
        match &self.source {
            Source::Files(_) | Source::SelfSigned(_) => true,
            #[cfg(feature = "acme")]
            Source::Acme(acme) => acme.is_ready(),
        }
    }

    /// Returns when the certificate in use expires, if known.
    pub(crate) fn expires(&self) -> Option<SystemTime> {
        match &self.source {
            Source::Files(watch) => Some(watch.certificate().expires()),
            Source::SelfSigned(certificate) => Some(certificate.expires()),
            #[cfg(feature = "acme")]
            Source::Acme(acme) => acme.expires(),
        }
    }

    /// Reads a certificate from its files again, or from other files. The current certificate stays in use until the
    /// new one is applied. Returns `None` for other sources.
    pub(crate) fn read_again(&self, config: &TlsConfig) -> Result<Option<NewCertificate<'_>>, TlsError> {
        match (&self.source, &config.certificate, &config.key) {
            (Source::Files(watch), Some(certificate), Some(key)) => watch.read(certificate, key).map(Some),
            _ => Ok(None),
        }
    }

    /// Keeps the certificate up to date for as long as it is polled.
    pub(crate) async fn renew(&self) {
        match &self.source {
            Source::Files(watch) => watch.run().await,
            Source::SelfSigned(_) => std::future::pending().await,
            #[cfg(feature = "acme")]
            Source::Acme(acme) => acme.run().await,
        }
    }

    /// Performs the handshake with a client. Returns `None` for an ACME authority, which needs only the handshake.
    pub(crate) async fn accept(&self, stream: TcpStream) -> io::Result<Option<TlsStream<TcpStream>>> {
        let mut stream = TlsAcceptor::from(Arc::clone(&self.config)).accept(stream).await?;
        if stream.get_ref().1.alpn_protocol() != Some(ACME_CHALLENGE) {
            return Ok(Some(stream));
        }
        info!("a certificate authority requested validation of a domain");
        stream.shutdown().await?;
        Ok(None)
    }
}

/// HTTP/3, the protocol below WebTransport.
const HTTP_3: &[u8] = b"h3";

/// The source of the QUIC certificate.
#[derive(Debug, Clone)]
pub(crate) enum QuicCertificate {
    /// The certificate of the relay, signed by an authority.
    Authorized(Arc<dyn ResolvesServerCert>),
    /// A certificate that the relay generates and announces by its hash.
    Pinned(Arc<Pinned>),
}

impl QuicCertificate {
    /// Creates the source of the QUIC certificate: the relay's own certificate if browsers trust it, or else a
    /// generated one for these names.
    pub(crate) fn new(
        authorized: Option<Arc<dyn ResolvesServerCert>>,
        names: &[String],
    ) -> Result<Self, TlsError> {
        match authorized {
            Some(resolver) => Ok(Self::Authorized(resolver)),
            None => Pinned::new(names).map(|pinned| Self::Pinned(Arc::new(pinned))),
        }
    }

    /// Returns the SHA-256 hashes that pages must pin; empty for a certificate signed by an authority.
    pub(crate) fn hashes(&self) -> Vec<[u8; 32]> {
        match self {
            Self::Authorized(_) => Vec::new(),
            Self::Pinned(pinned) => vec![pinned.hash()],
        }
    }

    /// Keeps the certificate valid for as long as it is polled.
    pub(crate) async fn renew(&self) {
        match self {
            Self::Authorized(_) => std::future::pending().await,
            Self::Pinned(pinned) => pinned.renew().await,
        }
    }
}

/// Returns the TLS configuration for QUIC.
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

/// The validity is shorter than the 14 days that browsers accept, because their clocks may be wrong.
const VALIDITY: Validity =
    Validity { before: Duration::from_secs(24 * 60 * 60), after: Duration::from_secs(12 * 24 * 60 * 60) };

/// The time before its expiry at which a certificate is replaced. Six days leave time to renew even if the relay's
/// machine is suspended for days before the expiry.
const RENEWED_BEFORE: Duration = Duration::from_secs(6 * 24 * 60 * 60);

/// The interval at which the expiry is checked. It is short, because the machine may be suspended or its clock may be
/// set.
const CHECK_INTERVAL: Duration = Duration::from_secs(60);

/// A certificate that pages pin by its hash instead of trusting an authority. Browsers require ECDSA and a validity of
/// at most 14 days.
#[derive(Debug)]
pub(crate) struct Pinned {
    certificate: Arc<Certificate>,
    names: Vec<String>,
}

impl Pinned {
    /// Creates a certificate for these names.
    fn new(names: &[String]) -> Result<Self, TlsError> {
        let made = certificate::make(names, VALIDITY)?;
        Ok(Self { certificate: Arc::new(Certificate::new(made)), names: names.to_vec() })
    }

    fn resolver(&self) -> Arc<dyn ResolvesServerCert> {
        Arc::clone(&self.certificate) as _
    }

    /// Returns the SHA-256 hash of the certificate for new connections.
    fn hash(&self) -> [u8; 32] {
        let key = self.certificate.key();
        key.cert.first().map_or([0; 32], |certificate| Sha256::digest(certificate.as_ref()).into())
    }

    async fn renew(&self) {
        loop {
            sleep(CHECK_INTERVAL).await;
            self.renew_at(SystemTime::now());
        }
    }

    /// Replaces the certificate if it is about to expire.
    fn renew_at(&self, now: SystemTime) {
        let left = self.certificate.expires().duration_since(now).unwrap_or_default();
        if left > RENEWED_BEFORE {
            return;
        }
        match certificate::make(&self.names, VALIDITY) {
            Ok(made) => {
                self.certificate.replace(made);
                info!("the WebTransport certificate was renewed");
            }
            Err(error) => warn!(%error, "the WebTransport certificate cannot be renewed"),
        }
    }
}

#[cfg(test)]
mod tests {
    use x509_parser::prelude::{FromDer, X509Certificate};

    use super::*;

    #[test]
    fn a_pinned_certificate_meets_the_browser_requirements() {
        let pinned = Pinned::new(&["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
        let key = pinned.certificate.key();
        let (_, certificate) = X509Certificate::from_der(&key.cert[0]).unwrap();
        let validity = certificate.validity();
        let seconds = validity.not_after.timestamp() - validity.not_before.timestamp();
        assert!(seconds <= 13 * 24 * 60 * 60, "{seconds}");
        // The OID of id-ecPublicKey.
        assert_eq!(certificate.public_key().algorithm.algorithm.to_id_string(), "1.2.840.10045.2.1");
        assert_eq!(pinned.hash(), <[u8; 32]>::from(Sha256::digest(&key.cert[0])));
    }

    #[test]
    fn a_pinned_certificate_is_replaced_before_it_expires() {
        let pinned = Pinned::new(&["localhost".to_owned()]).unwrap();
        let (first, expires) = (pinned.hash(), pinned.certificate.expires());
        pinned.renew_at(SystemTime::now());
        assert_eq!(pinned.hash(), first);
        pinned.renew_at(expires - RENEWED_BEFORE + Duration::from_secs(1));
        assert_ne!(pinned.hash(), first);
    }
}
