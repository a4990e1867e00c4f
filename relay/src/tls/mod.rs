//! TLS on the relay's own listener, and as a client, by rustls.
//!
//! The certificate comes from files, which are read again when they change, from a certificate authority that speaks ACME,
//! or is made at the start for development. A new certificate is used for new connections; those that are open keep theirs.

#[cfg(feature = "acme")]
mod acme;
#[cfg(feature = "acme")]
mod acme_cache;
mod certificate;
mod error;
mod files;
mod pinned;
mod quic;
mod self_signed;

use std::io;
use std::sync::Arc;
use std::time::SystemTime;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::server::ResolvesServerCert;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tracing::info;

use self::certificate::Certificate;
pub(crate) use self::error::TlsError;
use self::files::{NewCertificate, Watch};
pub(crate) use self::pinned::Pinned;
pub(crate) use self::quic::{QuicCertificate, quic_config};
use crate::config::TlsConfig;

/// What is served on a connection. HTTP/2 is not offered: a WebSocket over it needs an extension that axum lacks.
const HTTP_1: &[u8] = b"http/1.1";

/// RFC 8737: a certificate authority that looks for proof of a domain.
const ACME_CHALLENGE: &[u8] = b"acme-tls/1";

/// See the module.
#[derive(Debug)]
pub(crate) struct Tls {
    config: Arc<ServerConfig>,
    resolver: Arc<dyn ResolvesServerCert>,
    source: Source,
}

/// Where certificates come from while the relay runs.
#[derive(Debug)]
enum Source {
    Files(Watch),
    SelfSigned(Arc<Certificate>),
    #[cfg(feature = "acme")]
    Acme(acme::Acme),
}

impl Tls {
    /// Reads or makes the certificate, if there is to be one; one by ACME is requested once [`Tls::renew`] runs. One for
    /// development is for these names.
    pub(crate) fn new(config: &TlsConfig, names: &[String]) -> Result<Option<Self>, TlsError> {
        if let (Some(certificate), Some(key)) = (&config.certificate, &config.key) {
            let watch = Watch::new(certificate, key)?;
            let certificate = watch.certificate();
            return Self::with(certificate, vec![HTTP_1.to_vec()], Source::Files(watch)).map(Some);
        }
        if config.self_signed {
            let made = Arc::new(self_signed::make_for_development(names)?);
            let source = Source::SelfSigned(Arc::clone(&made));
            return Self::with(made, vec![HTTP_1.to_vec()], source).map(Some);
        }
        if config.acme_domains.is_empty() {
            return Ok(None);
        }
        Self::with_acme(config).map(Some)
    }

    /// Reads the files of the certificate, if it comes from files, and whether this relay can obtain one otherwise.
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
        // Without this a client that comes back costs a whole handshake once others have filled the small session cache.
        config.ticketer = ring::Ticketer::new().map_err(TlsError::Library)?;
        Ok(Self { config: Arc::new(config), resolver, source })
    }

    /// The certificate for QUIC, if it is one that browsers know how to check without a hash.
    pub(crate) fn authorized(&self) -> Option<Arc<dyn ResolvesServerCert>> {
        match &self.source {
            Source::SelfSigned(_) => None,
            Source::Files(_) => Some(Arc::clone(&self.resolver)),
            #[cfg(feature = "acme")]
            Source::Acme(_) => Some(Arc::clone(&self.resolver)),
        }
    }

    /// Whether clients can connect: a first certificate by ACME takes a while.
    pub(crate) fn is_ready(&self) -> bool {
        match &self.source {
            Source::Files(_) | Source::SelfSigned(_) => true,
            #[cfg(feature = "acme")]
            Source::Acme(acme) => acme.is_ready(),
        }
    }

    /// When the certificate in use expires, if that is known.
    pub(crate) fn expires(&self) -> Option<SystemTime> {
        match &self.source {
            Source::Files(watch) => Some(watch.certificate().expires()),
            Source::SelfSigned(certificate) => Some(certificate.expires()),
            #[cfg(feature = "acme")]
            Source::Acme(acme) => acme.expires(),
        }
    }

    /// Reads the files of the certificate again now, or other ones, if it comes from files. The old one stays in use until
    /// the new one is applied.
    pub(crate) fn read_again(&self, config: &TlsConfig) -> Result<Option<NewCertificate<'_>>, TlsError> {
        match (&self.source, &config.certificate, &config.key) {
            (Source::Files(watch), Some(certificate), Some(key)) => watch.read(certificate, key).map(Some),
            _ => Ok(None),
        }
    }

    /// Keeps the certificate up to date, for as long as it is polled.
    pub(crate) async fn renew(&self) {
        match &self.source {
            Source::Files(watch) => watch.run().await,
            Source::SelfSigned(_) => std::future::pending().await,
            #[cfg(feature = "acme")]
            Source::Acme(acme) => acme.run().await,
        }
    }

    /// The handshake with a client; `None` if it was a certificate authority, which wants nothing more.
    pub(crate) async fn accept(&self, stream: TcpStream) -> io::Result<Option<TlsStream<TcpStream>>> {
        let mut stream = TlsAcceptor::from(Arc::clone(&self.config)).accept(stream).await?;
        if stream.get_ref().1.alpn_protocol() != Some(ACME_CHALLENGE) {
            return Ok(Some(stream));
        }
        info!("a certificate authority asked for proof of a domain");
        stream.shutdown().await?;
        Ok(None)
    }
}
