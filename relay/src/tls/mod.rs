//! TLS on the relay's own listener, by rustls.
//!
//! The certificate comes from files, which are read again when they change, from a certificate authority that speaks ACME,
//! or is made at the start for development. A new certificate is used for new connections; those that are open keep theirs.

#[cfg(feature = "acme")]
mod acme;
mod certificate;
mod files;
mod options;
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
use self::files::Watch;
#[cfg(feature = "acme")]
pub use self::options::AcmeOptions;
pub use self::options::{TlsError, TlsOptions};

/// What is served on a connection. HTTP/2 is not offered: a WebSocket over it needs an extension that axum lacks.
const HTTP_1: &[u8] = b"http/1.1";

/// RFC 8737: a certificate authority that looks for proof of a domain.
const ACME_CHALLENGE: &[u8] = b"acme-tls/1";

/// See the module.
#[derive(Debug)]
pub(crate) struct Tls {
    config: Arc<ServerConfig>,
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
    /// Reads or makes the certificate; one by ACME is requested once [`Tls::renew`] runs.
    pub(crate) fn new(options: &TlsOptions) -> Result<Self, TlsError> {
        match options {
            TlsOptions::Files { certificate, key } => {
                let watch = Watch::new(certificate, key)?;
                Self::with(watch.certificate(), vec![HTTP_1.to_vec()], Source::Files(watch))
            }
            TlsOptions::SelfSigned { names } => {
                let made = Arc::new(self_signed::make(names)?);
                Self::with(made.clone(), vec![HTTP_1.to_vec()], Source::SelfSigned(made))
            }
            #[cfg(feature = "acme")]
            TlsOptions::Acme(options) => {
                let acme = acme::Acme::new(options)?;
                let protocols = vec![HTTP_1.to_vec(), ACME_CHALLENGE.to_vec()];
                Self::with(acme.resolver(), protocols, Source::Acme(acme))
            }
        }
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
            .with_cert_resolver(resolver);
        config.alpn_protocols = protocols;
        // Without this a client that comes back costs a whole handshake once others have filled the small session cache.
        config.ticketer = ring::Ticketer::new().map_err(TlsError::Library)?;
        Ok(Self { config: Arc::new(config), source })
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
            Source::Acme(_) => None,
        }
    }

    /// Reads the files of the certificate again now. What fails leaves the old certificate in use.
    pub(crate) fn reload(&self) -> Result<(), TlsError> {
        match &self.source {
            Source::Files(watch) => watch.reload(),
            Source::SelfSigned(_) => Ok(()),
            #[cfg(feature = "acme")]
            Source::Acme(_) => Ok(()),
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
