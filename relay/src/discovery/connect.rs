//! Connections to the store over TCP, TLS or a Unix socket. Responses are bounded, and errors name the reason.

use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rakwire_udp::printable;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, ConnectionAddr, FromRedisValue, RedisError};
use rustls::pki_types::ServerName;
use rustls::{CertificateError, ClientConfig};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::announcement::PREFIX;
use crate::trust::client_config;

/// The timeout of one response, and of connecting.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The maximum number of characters of the store's error text in a message.
const MAX_QUOTED: usize = 200;

/// The location of a store, and the way to connect.
#[derive(Debug)]
pub(super) struct StoreAddress {
    client: Client,
    tls: Option<Arc<ClientConfig>>,
}

impl StoreAddress {
    /// Parses a URL. With TLS, the store's certificate must be issued by the authority in the given file, or by one
    /// that the system trusts.
    pub(super) fn new(url: &str, ca: Option<&Path>) -> Result<Self, DiscoveryError> {
        let by_tls = ["rediss:", "valkeys:"].iter().find_map(|scheme| url.strip_prefix(scheme));
        let tls = match (by_tls, ca) {
            // The fragment could make the library trust any certificate.
            (Some(rest), _) if rest.contains('#') => return Err(DiscoveryError::Url),
            (Some(_), ca) => {
                let config = client_config(ca).map_err(|error| DiscoveryError::Tls(error.to_string()))?;
                Some(Arc::new(config))
            }
            (None, Some(_)) => return Err(DiscoveryError::NoTls),
            (None, None) => None,
        };
        let plain = by_tls.map(|rest| format!("redis:{rest}"));
        let client = Client::open(plain.as_deref().unwrap_or(url)).map_err(|_| DiscoveryError::Url)?;
        Ok(Self { client, tls })
    }

    /// Connects with a timeout.
    pub(super) async fn connect(&self) -> Result<Connection, DiscoveryError> {
        let timed_out = |_| DiscoveryError::Unreachable("it does not answer in time".to_owned());
        timeout(TIMEOUT, self.try_connect()).await.map_err(timed_out)?
    }

    async fn try_connect(&self) -> Result<Connection, DiscoveryError> {
        let failed = |error: io::Error| DiscoveryError::Unreachable(said(&error));
        match self.client.get_connection_info().addr() {
            ConnectionAddr::Tcp(host, port) => {
                let stream = TcpStream::connect((host.as_str(), *port)).await.map_err(failed)?;
                stream.set_nodelay(true).map_err(failed)?;
                let Some(tls) = &self.tls else { return self.begin(stream).await };
                let name = ServerName::try_from(host.clone()).map_err(|_| DiscoveryError::Url)?;
                let connected = TlsConnector::from(Arc::clone(tls)).connect(name, stream).await;
                self.begin(connected.map_err(|error| DiscoveryError::Unreachable(tls_reason(&error)))?).await
            }
            #[cfg(unix)]
            ConnectionAddr::Unix(path) => {
                self.begin(tokio::net::UnixStream::connect(path).await.map_err(failed)?).await
            }
            _ => Err(DiscoveryError::Url),
        }
    }

    /// Starts the Redis protocol on a stream.
    async fn begin<S>(&self, stream: S) -> Result<Connection, DiscoveryError>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let allowance = Arc::<Allowance>::default();
        allowance.renew();
        let stream = Bounded { stream, allowance: Arc::clone(&allowance) };
        let info = self.client.get_connection_info().redis_settings();
        let config = AsyncConnectionConfig::new().set_response_timeout(Some(TIMEOUT));
        match MultiplexedConnection::new_with_config(info, stream, config).await {
            Ok((connection, driver)) => {
                Ok(Connection { connection, allowance, driver: tokio::spawn(driver) })
            }
            Err(error) => Err(allowance.reason(&error)),
        }
    }
}

/// The number of bytes that may still be read for the expected response.
#[derive(Debug, Default)]
struct Allowance {
    left: AtomicUsize,
    is_exceeded: AtomicBool,
}

impl Allowance {
    fn renew(&self) {
        self.left.store(ANSWER_MAX, Ordering::Relaxed);
    }

    /// Returns the reason why a command failed.
    fn reason(&self, error: &RedisError) -> DiscoveryError {
        if self.is_exceeded.load(Ordering::Relaxed) {
            DiscoveryError::TooLong
        } else {
            DiscoveryError::Store(said(error))
        }
    }
}

/// A stream that limits reading to its allowance.
struct Bounded<S> {
    stream: S,
    allowance: Arc<Allowance>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Bounded<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        let read = buffer.filled().len().saturating_sub(before);
        let left = self.allowance.left.load(Ordering::Relaxed);
        match left.checked_sub(read) {
            Some(left) => self.allowance.left.store(left, Ordering::Relaxed),
            None => {
                self.allowance.is_exceeded.store(true, Ordering::Relaxed);
                return Poll::Ready(Err(io::Error::other("an answer is too long")));
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Bounded<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// A connection to the store, closed on drop.
#[derive(Debug)]
pub(super) struct Connection {
    connection: MultiplexedConnection,
    allowance: Arc<Allowance>,
    driver: JoinHandle<()>,
}

impl Connection {
    /// Returns the response to one command.
    pub(super) async fn query<T: FromRedisValue>(
        &mut self,
        command: &redis::Cmd,
    ) -> Result<T, DiscoveryError> {
        self.allowance.renew();
        let answer = command.query_async(&mut self.connection).await;
        answer.map_err(|error| self.allowance.reason(&error))
    }

    /// Returns the responses to several commands. Together they may be as long as one response.
    pub(super) async fn query_each<T: FromRedisValue>(
        &mut self,
        pipe: &redis::Pipeline,
    ) -> Result<Vec<Result<T, RedisError>>, DiscoveryError> {
        self.allowance.renew();
        let answers = pipe.query_async(&mut self.connection).await;
        answers.map_err(|error| self.allowance.reason(&error))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // The driver would wait for responses that never arrive.
        self.driver.abort();
    }
}

/// Formats an error as one short line, because its text may come from the store.
pub(super) fn said(error: &dyn core::error::Error) -> String {
    let text = error.to_string();
    printable(&text.chars().take(MAX_QUOTED).collect::<String>())
}

/// Returns why TLS with the store failed.
fn tls_reason(error: &io::Error) -> String {
    const OTHER: &str = "it does not speak TLS; write redis://, or enable TLS in the store";
    let tls = error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>());
    match tls {
        Some(rustls::Error::InvalidCertificate(error)) => certificate_reason(error).to_owned(),
        Some(error) if !matches!(error, rustls::Error::InvalidMessage(_)) => {
            format!("the TLS handshake failed: {}", said(error))
        }
        None if error.kind() != io::ErrorKind::UnexpectedEof => said(error),
        Some(_) | None => OTHER.to_owned(),
    }
}

/// Describes the problem with the store's certificate.
const fn certificate_reason(error: &CertificateError) -> &'static str {
    if matches!(error, CertificateError::UnknownIssuer | CertificateError::BadSignature) {
        "its certificate is signed by an authority that this machine does not trust; give the file of the authority"
    } else if matches!(error, CertificateError::Expired | CertificateError::ExpiredContext { .. }) {
        "its certificate has expired; renew it"
    } else if matches!(error, CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. }) {
        "its certificate is not valid yet; check the clocks"
    } else if matches!(
        error,
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. }
    ) {
        "its certificate is for another name; use a name from the certificate in the URL"
    } else {
        "its certificate cannot be used"
    }
}

/// The maximum size of one response in bytes. Any writer of the store can set keys of any length, and a store may send
/// anything.
pub(super) const ANSWER_MAX: usize = 512 * 1_024;

/// The reason why servers cannot be discovered or announced.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DiscoveryError {
    /// The URL of the store is unusable. The message omits it, because it may contain a password.
    #[error(
        "the URL of the store cannot be used; write it as redis://HOST:PORT/, rediss://HOST:PORT/ or unix:///PATH"
    )]
    Url,
    /// A certificate authority is configured for a URL without TLS.
    #[error(
        "the URL of the store does not use TLS, so a certificate authority has no effect: write rediss://, or \
         remove the authority"
    )]
    NoTls,
    /// The store's certificate cannot be verified: the file of the authority is unusable, or the system trusts none.
    #[error("{0}")]
    Tls(String),
    /// The connection to the store failed.
    #[error("the store of servers cannot be reached: {0}")]
    Unreachable(String),
    /// The store rejects a command, or does not respond.
    #[error("the store of servers: {0}")]
    Store(String),
    /// A response is too long, because the keys in the store are too long, or because the server at the URL is not a
    /// store.
    #[error(
        "the store of servers sent a response of more than {ANSWER_MAX} bytes: use a separate database for \
         announcements, and check who may write keys that begin with {PREFIX}"
    )]
    TooLong,
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::net::SocketAddr;

    use rcgen::{CertificateParams, KeyPair, date_time_ymd};
    use rustls::ServerConfig;
    use rustls::crypto::ring;
    use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio_rustls::TlsAcceptor;

    use super::*;

    /// Creates a certificate for `localhost` that is valid until `last_year`, and its key.
    fn certificate(last_year: i32) -> (rcgen::Certificate, KeyPair) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        (params.not_before, params.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(last_year, 1, 1));
        (params.self_signed(&key).unwrap(), key)
    }

    /// Runs a store that answers every command with OK, over TLS with this certificate, or without TLS.
    async fn store(certificate: Option<&(rcgen::Certificate, KeyPair)>) -> SocketAddr {
        let acceptor = certificate.map(|(certificate, key)| {
            let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
            let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
            let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
            let config = config.with_single_cert(vec![certificate.der().clone()], key).unwrap();
            TlsAcceptor::from(Arc::new(config))
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    let mut buffer = [0; 1_024];
                    match acceptor {
                        None => {
                            while stream.read(&mut buffer).await? > 0 {
                                stream.write_all(b"-ERR Protocol error\r\n").await?;
                            }
                        }
                        Some(acceptor) => {
                            let mut stream = acceptor.accept(stream).await?;
                            while stream.read(&mut buffer).await? > 0 {
                                // The client begins with two commands.
                                stream.write_all(b"+OK\r\n+OK\r\n").await?;
                            }
                        }
                    }
                    io::Result::Ok(())
                });
            }
        });
        address
    }

    #[tokio::test]
    async fn a_tls_store_needs_a_certificate_of_its_authority() {
        let [good, other, old] = [certificate(4_000), certificate(4_000), certificate(2_021)];
        let file = |name: &str, certificate: &rcgen::Certificate| {
            let path = std::env::temp_dir().join(format!("rakwire-store-{name}-{}.pem", std::process::id()));
            fs::write(&path, certificate.pem()).unwrap();
            path
        };
        let files = [file("good", &good.0), file("other", &other.0), file("old", &old.0)];
        let (by_tls, expired, plain) = (store(Some(&good)).await, store(Some(&old)).await, store(None).await);
        for (host, address, ca, said) in [
            ("localhost", by_tls, Some(0), None),
            ("localhost", by_tls, Some(1), Some("an authority that this machine does not trust")),
            ("localhost", by_tls, None, Some("an authority that this machine does not trust")),
            ("127.0.0.1", by_tls, Some(0), Some("is for another name")),
            ("localhost", expired, Some(2), Some("has expired")),
            ("localhost", plain, Some(0), Some("does not speak TLS")),
        ] {
            let ca: Option<&Path> = ca.map(|at: usize| &*files[at]);
            let url = format!("rediss://{host}:{}/", address.port());
            let connected = StoreAddress::new(&url, ca).unwrap().connect().await;
            let error = connected.as_ref().err().map(ToString::to_string);
            match said {
                None => assert_eq!(error, None),
                Some(said) => {
                    assert!(error.as_ref().is_some_and(|it| it.contains(said)), "{said}: {error:?}")
                }
            }
        }
        files.iter().for_each(|file| fs::remove_file(file).unwrap());
    }
}
