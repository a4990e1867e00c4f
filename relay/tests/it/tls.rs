//! TLS: certificates from files and their replacement, a development certificate, and handshakes that are never
//! finished.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use rakwire_relay::config::Loaded;
use rakwire_relay::{Config, Relay};
use rcgen::{
    BasicConstraints, CertificateParams, IsCa, KeyPair, PKCS_ECDSA_P256_SHA256, PublicKeyData,
    SignatureAlgorithm,
};
use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{WebSocketStream, client_async};
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::prelude::FromDer;

use crate::program;
use crate::support::{Running, Server, config, directory, eventually, within};
use crate::verifier::Accept;

/// A certificate authority.
pub(crate) struct Authority {
    certificate: rcgen::Certificate,
    key: KeyPair,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        Self { certificate: params.self_signed(&key).unwrap(), key }
    }

    /// Writes a new certificate for a name, and its key.
    pub(crate) fn issue(&self, name: &str, certificate: &Path, key: &Path) {
        let pair = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let issued = params.signed_by(&pair, &self.certificate, &self.key).unwrap();
        fs::write(certificate, issued.pem()).unwrap();
        fs::write(key, pair.serialize_pem()).unwrap();
    }

    /// Issues a certificate for the names and the P-256 key in a signing request in DER.
    pub(crate) fn sign(&self, request: &[u8]) -> String {
        let (_, request) = X509CertificationRequest::from_der(request).unwrap();
        let extensions = request.requested_extensions().into_iter().flatten();
        let mut hosts = Vec::new();
        for extension in extensions {
            let ParsedExtension::SubjectAlternativeName(names) = extension else { continue };
            for name in &names.general_names {
                let GeneralName::DNSName(host) = name else { panic!("not a DNS name: {name}") };
                hosts.push((*host).to_owned());
            }
        }
        let params = CertificateParams::new(hosts).unwrap();
        let key = &request.certification_request_info.subject_pki.subject_public_key;
        params.signed_by(&RequestedKey(&key.data), &self.certificate, &self.key).unwrap().pem()
    }

    pub(crate) fn pem(&self) -> String {
        self.certificate.pem()
    }

    /// Returns a connector that trusts only this authority.
    pub(crate) fn connector(&self) -> TlsConnector {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.der().clone()).unwrap();
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().unwrap();
        Arc::new(builder.with_root_certificates(roots).with_no_client_auth()).into()
    }
}

/// The public key of a signing request.
struct RequestedKey<'a>(&'a [u8]);

impl PublicKeyData for RequestedKey<'_> {
    fn der_bytes(&self) -> &[u8] {
        self.0
    }

    fn algorithm(&self) -> &SignatureAlgorithm {
        &PKCS_ECDSA_P256_SHA256
    }
}

/// Opens a TLS connection.
pub(crate) async fn connect(
    connector: &TlsConnector,
    address: SocketAddr,
    name: &str,
) -> TlsStream<TcpStream> {
    let stream = within(TcpStream::connect(address)).await.unwrap();
    connect_over(connector, stream, name).await
}

/// Opens a TLS connection over a TCP connection.
pub(crate) async fn connect_over(
    connector: &TlsConnector,
    stream: TcpStream,
    name: &str,
) -> TlsStream<TcpStream> {
    let name = ServerName::try_from(name.to_owned()).unwrap();
    within(connector.connect(name, stream)).await.unwrap()
}

/// A TLS client of the target `game`.
pub(crate) struct TlsClient(pub(crate) WebSocketStream<TlsStream<TcpStream>>);

impl TlsClient {
    pub(crate) async fn open(connector: &TlsConnector, address: SocketAddr, name: &str) -> Self {
        Self::over(connect(connector, address, name).await, name).await
    }

    pub(crate) async fn over(stream: TlsStream<TcpStream>, name: &str) -> Self {
        let url = format!("wss://{name}/ws?target=game");
        Self(within(client_async(url, stream)).await.unwrap().0)
    }

    pub(crate) async fn echoes(&mut self, text: &[u8]) {
        within(self.0.send(Message::binary(text.to_vec()))).await.unwrap();
        assert_eq!(self.receive().await, Message::binary(text.to_vec()));
    }

    /// Returns the next message that is not a ping.
    pub(crate) async fn receive(&mut self) -> Message {
        loop {
            let message = within(self.0.next()).await.unwrap().unwrap();
            if !matches!(message, Message::Ping(_) | Message::Pong(_)) {
                return message;
            }
        }
    }

    /// Waits for a ping, which must be the next message. Reading the connection answers it.
    pub(crate) async fn answer_ping(&mut self) {
        let message = within(self.0.next()).await.unwrap().unwrap();
        assert!(matches!(message, Message::Ping(_)), "{message:?}");
        within(self.0.flush()).await.unwrap();
    }

    /// Returns the certificate that the relay presented.
    fn certificate(&self) -> Vec<u8> {
        self.0.get_ref().get_ref().1.peer_certificates().unwrap()[0].to_vec()
    }
}

/// A relay with a certificate from files.
struct WithFiles {
    authority: Authority,
    certificate: PathBuf,
    key: PathBuf,
    config: Config,
}

impl WithFiles {
    async fn new(name: &str) -> Self {
        let directory = directory(name);
        let (certificate, key) = (directory.join("chain.pem"), directory.join("key.pem"));
        let authority = Authority::new();
        authority.issue("localhost", &certificate, &key);
        let mut config = config(Server::echo().await);
        config.tls.certificate = Some(certificate.clone());
        config.tls.key = Some(key.clone());
        Self { authority, certificate, key, config }
    }

    fn replace(&self) {
        self.authority.issue("localhost", &self.certificate, &self.key);
    }
}

#[tokio::test]
async fn new_clients_get_a_replaced_certificate() {
    let files = WithFiles::new("tls-replaced").await;
    let relay = Running::start(files.config.clone()).await;
    let connector = files.authority.connector();
    let mut early = TlsClient::open(&connector, relay.address, "localhost").await;
    early.echoes(b"hello").await;
    let first = early.certificate();

    fs::write(&files.key, "not a key").unwrap();
    let mut still = TlsClient::open(&connector, relay.address, "localhost").await;
    assert_eq!(still.certificate(), first, "the relay keeps the certificate if the new files are unusable");
    still.echoes(b"still").await;

    files.replace();
    let mut late = loop {
        // A new connector has no TLS session. Resuming a session would skip the certificate.
        let late = TlsClient::open(&files.authority.connector(), relay.address, "localhost").await;
        if late.certificate() != first {
            break late;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    late.echoes(b"late").await;
    early.echoes(b"still here").await;
    relay.stop().await;
}

/// A refused configuration changes nothing, including the certificate.
#[tokio::test]
async fn a_refused_configuration_keeps_the_certificate() {
    let directory = directory("tls-refused");
    let authority = Authority::new();
    let target = Server::echo().await;
    let write = |listen: &str, name: &str, origins: &str| {
        let (certificate, key) =
            (directory.join(format!("{name}.pem")), directory.join(format!("{name}.key")));
        authority.issue("localhost", &certificate, &key);
        let text = format!(
            "listen = \"{listen}:0\"\n[targets.game]\naddress = \"{target}\"\n\
             [admission]\nallow_origins = [{origins}]\n[tls]\ncertificate = {certificate:?}\nkey = {key:?}\n"
        );
        fs::write(directory.join("relay.toml"), text).unwrap();
    };
    write("0.0.0.0", "first", "\"*\"");
    let path = directory.join("relay.toml");
    let load = move || Loaded::load(Some(&path), &[]);
    let relay = Relay::bind(load().unwrap().config).await.unwrap();
    let address = SocketAddr::new([127, 0, 0, 1].into(), relay.local_addr().port());
    let reloader = relay.reloader(load);
    let running = tokio::spawn(relay.run(std::future::pending()));
    let served = async || TlsClient::open(&authority.connector(), address, "localhost").await.certificate();
    let first = served().await;
    // The socket stays public, so this configuration is refused after its files were read.
    write("127.0.0.1", "second", "");
    assert!(reloader.reload().await.is_err());
    assert_eq!(served().await, first);
    write("0.0.0.0", "third", "\"*\"");
    reloader.reload().await.unwrap();
    assert_ne!(served().await, first);
    running.abort();
}

#[tokio::test]
async fn files_are_served_over_tls() {
    let mut files = WithFiles::new("tls-served").await;
    let pages = directory("tls-pages");
    fs::write(pages.join("index.html"), "page").unwrap();
    files.config.serve = Some(pages);
    let relay = Running::start(files.config.clone()).await;
    let mut stream = connect(&files.authority.connector(), relay.address, "localhost").await;
    stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    within(stream.read_to_string(&mut answer)).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("page"), "{answer}");
}

#[tokio::test]
async fn failed_and_endless_handshakes_are_closed_and_counted() {
    let mut files = WithFiles::new("tls-handshakes").await;
    files.config.limits.header_timeout = Duration::from_secs(5);
    let relay = Running::start(files.config.clone()).await;
    let connector = files.authority.connector();
    let mut client = TlsClient::open(&connector, relay.address, "localhost").await;

    let mut silent = TcpStream::connect(relay.address).await.unwrap();
    let mut partial = TcpStream::connect(relay.address).await.unwrap();
    // The first bytes of a ClientHello.
    partial.write_all(&[0x16, 0x03, 0x01, 0x02, 0x00, 0x01]).await.unwrap();
    for stream in [&mut silent, &mut partial] {
        assert!(matches!(within(stream.read(&mut [0; 64])).await, Ok(0) | Err(_)));
    }
    eventually("both handshakes have timed out", || relay.snapshot().handshakes_timed_out == 2).await;

    let mut plain = TcpStream::connect(relay.address).await.unwrap();
    plain.write_all(b"GET /healthz HTTP/1.1\r\nHost: relay\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    let _ = within(plain.read_to_end(&mut answer)).await;
    assert!(!answer.starts_with(b"HTTP"), "plain HTTP gets no response");
    eventually("the failed handshake is counted", || relay.snapshot().handshakes_failed == 1).await;
    client.echoes(b"not disturbed").await;
}

#[tokio::test]
async fn a_development_certificate_is_generated_at_the_start() {
    let mut config = config(Server::echo().await);
    config.tls.self_signed = true;
    let relay = Running::start(config).await;
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(Accept::Anyone));
    let connector: TlsConnector = Arc::new(builder.with_no_client_auth()).into();
    TlsClient::open(&connector, relay.address, "127.0.0.1").await.echoes(b"hello").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_server_list_is_fetched_over_https() {
    let files = WithFiles::new("tls-list").await;
    let relay = Running::start(files.config.clone()).await;
    let trusted = files.certificate.with_file_name("trusted.pem");
    fs::write(&trusted, files.authority.pem()).unwrap();
    let url = format!("https://localhost:{}", relay.address.port());
    let list = |authorities: &Path| {
        let mut command = program::relay();
        command.args(["list", &url]).env("SSL_CERT_FILE", authorities).output().unwrap()
    };
    let output = list(&trusted);
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && table.contains("game"), "{table}{:?}", output.stderr);

    fs::write(&trusted, Authority::new().pem()).unwrap();
    let output = list(&trusted);
    let line = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && line.contains("certificate"), "{line}");
    assert_eq!(line.lines().count(), 1, "{line}");
    relay.stop().await;
}
