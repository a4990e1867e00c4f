//! A certificate by ACME, from an authority in this process that performs the checks of a real authority.

use std::fs;
use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ServerConfig};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;
use tokio_rustls::{TlsAcceptor, TlsConnector};
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::operations::Operated;
use crate::program::relay;
use crate::support::{Server, directory, get, within};
use crate::tls::{Authority, TlsClient};
use crate::verifier::Accept;

/// See RFC 8737 section 3.
const CHALLENGE_PROTOCOL: &[u8] = b"acme-tls/1";
const CHALLENGE_EXTENSION: &str = "1.3.6.1.5.5.7.1.31";

/// A certificate authority with a directory (RFC 8555).
struct Acme {
    address: SocketAddr,
    authority: Authority,
    /// The address of the relay, once known. Checks connect to it instead of port 443 of the relay's domain.
    relay: OnceLock<SocketAddr>,
    orders: AtomicU32,
    is_proven: Mutex<bool>,
    issued: Mutex<Option<String>>,
}

impl Acme {
    /// Starts the authority, and writes its trust anchor to `trusted`.
    async fn start(trusted: &std::path::Path) -> Arc<Self> {
        let authority = Authority::new();
        fs::write(trusted, authority.pem()).unwrap();
        let folder = directory("acme-authority");
        let (chain, key) = (folder.join("chain.pem"), folder.join("key.pem"));
        authority.issue("localhost", &chain, &key);
        let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let config = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let config = config
            .with_single_cert(
                vec![CertificateDer::from_pem_file(chain).unwrap()],
                PrivateKeyDer::from_pem_file(key).unwrap(),
            )
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let acme = Arc::new(Self {
            address: listener.local_addr().unwrap(),
            authority,
            relay: OnceLock::new(),
            orders: AtomicU32::new(0),
            is_proven: Mutex::new(false),
            issued: Mutex::new(None),
        });
        let (acceptor, served) = (TlsAcceptor::from(Arc::new(config)), Arc::clone(&acme));
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (acceptor, served) = (acceptor.clone(), Arc::clone(&served));
                tokio::spawn(async move {
                    if let Ok(stream) = acceptor.accept(stream).await {
                        // The client may end the connection in any way, so errors are ignored.
                        let _ = served.serve(stream).await;
                    }
                });
            }
        });
        acme
    }

    fn url(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.address.port())
    }

    /// Answers one request.
    async fn serve(
        &self,
        stream: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
    ) -> std::io::Result<()> {
        let mut stream = BufReader::new(stream);
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
        let mut length = 0;
        loop {
            let mut header = String::new();
            stream.read_line(&mut header).await?;
            if header.trim().is_empty() {
                break;
            }
            if let Some(value) = header.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await?;
        let (status, headers, body) = self.answer(&path, &payload(&body)).await;
        let answer = format!(
            "HTTP/1.1 {status}\r\nReplay-Nonce: bm9uY2U\r\nContent-Length: {}\r\nConnection: close\r\n{headers}\r\n{body}",
            body.len()
        );
        stream.write_all(answer.as_bytes()).await?;
        stream.shutdown().await
    }

    async fn answer(&self, path: &str, payload: &Value) -> (&'static str, String, String) {
        let ok =
            |value: Value| ("200 OK", "Content-Type: application/json\r\n".to_owned(), value.to_string());
        match path {
            "/directory" => ok(json!({
                "newNonce": self.url("/nonce"), "newAccount": self.url("/account"), "newOrder": self.url("/order"),
            })),
            "/nonce" => ("200 OK", String::new(), String::new()),
            "/account" => {
                assert_eq!(payload["contact"], json!(["mailto:admin@example.org"]));
                let location = format!("Location: {}\r\n", self.url("/account/1"));
                ("201 Created", location, json!({"status": "valid"}).to_string())
            }
            "/order" => {
                self.orders.fetch_add(1, Ordering::Relaxed);
                assert_eq!(payload["identifiers"], json!([{"type": "dns", "value": "localhost"}]));
                let location = format!("Location: {}\r\n", self.url("/order/1"));
                ("201 Created", location, self.order().to_string())
            }
            "/order/1" => ok(self.order()),
            "/authorization" => ok(self.authorization()),
            "/challenge" => {
                self.check_domain().await;
                *self.is_proven.lock().unwrap() = true;
                ok(self.challenge())
            }
            "/finalize" => {
                assert!(*self.is_proven.lock().unwrap(), "a certificate is issued only after the proof");
                let request = URL_SAFE_NO_PAD.decode(payload["csr"].as_str().unwrap()).unwrap();
                *self.issued.lock().unwrap() = Some(self.authority.sign(&request));
                ok(self.order())
            }
            "/certificate" => {
                let chain = self.issued.lock().unwrap().clone().unwrap() + &self.authority.pem();
                ("200 OK", "Content-Type: application/pem-certificate-chain\r\n".to_owned(), chain)
            }
            other => panic!("unknown path: {other}"),
        }
    }

    fn order(&self) -> Value {
        let status = match (*self.is_proven.lock().unwrap(), self.issued.lock().unwrap().is_some()) {
            (_, true) => "valid",
            (true, false) => "ready",
            (false, false) => "pending",
        };
        let mut order = json!({
            "status": status,
            "identifiers": [{"type": "dns", "value": "localhost"}],
            "authorizations": [self.url("/authorization")],
            "finalize": self.url("/finalize"),
        });
        if status == "valid" {
            order["certificate"] = self.url("/certificate").into();
        }
        order
    }

    fn challenge(&self) -> Value {
        let status = if *self.is_proven.lock().unwrap() { "valid" } else { "pending" };
        json!({"type": "tls-alpn-01", "url": self.url("/challenge"), "token": "dG9rZW4", "status": status})
    }

    fn authorization(&self) -> Value {
        let challenge = self.challenge();
        json!({
            "status": challenge["status"],
            "identifier": {"type": "dns", "value": "localhost"},
            "challenges": [challenge],
        })
    }

    /// Validates the domain in a TLS handshake (RFC 8737 section 3).
    async fn check_domain(&self) {
        let relay = within(async {
            loop {
                if let Some(relay) = self.relay.get() {
                    break *relay;
                }
                sleep(Duration::from_millis(10)).await;
            }
        })
        .await;
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().unwrap();
        let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(Accept::Anyone));
        let mut config = builder.with_no_client_auth();
        config.alpn_protocols = vec![CHALLENGE_PROTOCOL.to_vec()];
        let stream = TcpStream::connect(relay).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let stream = within(TlsConnector::from(Arc::new(config)).connect(name, stream)).await.unwrap();
        let (_, connection) = stream.get_ref();
        assert_eq!(connection.alpn_protocol(), Some(CHALLENGE_PROTOCOL));
        let shown = connection.peer_certificates().unwrap()[0].clone();
        let (_, shown) = X509Certificate::from_der(&shown).unwrap();
        let proof =
            shown.extensions().iter().find(|extension| extension.oid.to_id_string() == CHALLENGE_EXTENSION);
        // The hash of 32 bytes, encoded as an OCTET STRING.
        assert_eq!(proof.unwrap().value.len(), 2 + 32);
    }
}

/// Returns the payload of a signed request (RFC 7515), unless it is empty.
fn payload(body: &[u8]) -> Value {
    let Ok(signed) = serde_json::from_slice::<Value>(body) else { return Value::Null };
    let payload = URL_SAFE_NO_PAD.decode(signed["payload"].as_str().unwrap()).unwrap();
    serde_json::from_slice(&payload).unwrap_or(Value::Null)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_is_obtained_by_acme_and_cached() {
    let folder = directory("acme");
    let (trusted, cache) = (folder.join("trusted.pem"), folder.join("cache"));
    // An earlier run may have left the directory behind.
    let _ = fs::remove_dir_all(&cache);
    let acme = Acme::start(&trusted).await;
    let start_url = acme.url("/directory");
    let cached = cache.to_str().unwrap().to_owned();
    let server = Server::echo().await;
    let arguments = [
        "--acme-domain",
        "localhost",
        "--acme-contact",
        "admin@example.org",
        "--acme-cache",
        &cached,
        "--acme-directory",
        &start_url,
        "--admin-listen",
        "127.0.0.1:0",
    ];
    let start = || {
        let mut command = relay();
        command.args(["--listen", "127.0.0.1:0"]).args(arguments).stderr(Stdio::piped());
        command.env("SSL_CERT_FILE", &trusted);
        Operated::run(command.args(["--target", &format!("game={server}"), "--log-format", "json"]))
    };
    let first = start();
    acme.relay.set(first.program.address).unwrap();
    let of_new = connects(&acme, first.program.address).await;
    assert_eq!(expiry_in_metrics(first.admin).await, of_new);
    drop(first);
    let second = start();
    let of_kept = connects(&acme, second.program.address).await;
    assert_eq!(of_kept, of_new);
    assert_eq!(expiry_in_metrics(second.admin).await, of_kept);
    assert_eq!(acme.orders.load(Ordering::Relaxed), 1, "a restarted relay uses the cached certificate");
}

/// Returns the expiry of the certificate according to the metrics.
async fn expiry_in_metrics(admin: SocketAddr) -> i64 {
    let name = "rakwire_relay_certificate_expiry_timestamp_seconds ";
    // A new certificate is stored shortly after its first use.
    within(async {
        loop {
            let (_, metrics) = get(admin, "/metrics").await;
            if let Some(value) = metrics.lines().find_map(|line| line.strip_prefix(name)) {
                return value.parse::<f64>().unwrap() as i64;
            }
            sleep(Duration::from_millis(20)).await;
        }
    })
    .await
}

/// Waits until the relay has the certificate, and connects to it. Returns the earlier of the expiries of the
/// certificate and of the authority's certificate.
async fn connects(acme: &Acme, relay: SocketAddr) -> i64 {
    let connector = acme.authority.connector();
    let stream = within(async {
        loop {
            let stream = TcpStream::connect(relay).await.unwrap();
            let name = ServerName::try_from("localhost").unwrap();
            if let Ok(stream) = connector.connect(name, stream).await {
                break stream;
            }
            sleep(Duration::from_millis(100)).await;
        }
    })
    .await;
    let shown = stream.get_ref().1.peer_certificates().unwrap().to_vec();
    let ends =
        shown.iter().map(|der| X509Certificate::from_der(der).unwrap().1.validity().not_after.timestamp());
    TlsClient::over(stream, "localhost").await.echoes(b"hello").await;
    ends.min().unwrap()
}
