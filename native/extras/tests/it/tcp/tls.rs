//! TLS: trusted servers, and handshakes that fail or never finish.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use rakwire_extras::tcp::rustls::pki_types::{PrivateKeyDer, ServerName};
use rakwire_extras::tcp::rustls::{ClientConfig, RootCertStore, ServerConfig};
use rakwire_extras::tcp::{ConnectError, ConnectFailure, ConnectOptions, DisconnectReason, Options};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{ORDERED, endpoint, soon};
use crate::support::until;

const NAME: &str = "game.example";

/// Options of a server with a certificate, and of a client that trusts it.
fn options() -> (Options, Arc<ClientConfig>) {
    let made = rcgen::generate_simple_self_signed([NAME.to_owned()]).expect("a certificate");
    let key = PrivateKeyDer::try_from(made.key_pair.serialize_der()).expect("a key");
    let chain = vec![made.cert.der().clone()];
    let config = ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key);
    let mut options = Options::server(4);
    options.tls = Some(Arc::new(config.expect("key and certificate fit")));
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).expect("a root");
    let client = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    (options, Arc::new(client))
}

fn trusting(config: &Arc<ClientConfig>, name: &'static str) -> ConnectOptions {
    let mut options = ConnectOptions::default();
    options.tls = Some((config.clone(), ServerName::try_from(name).expect("a name")));
    options
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_pass_through_tls() {
    let (options, config) = options();
    let (server, client) = (endpoint(options).await, endpoint(Options::client()).await);
    let connect = trusting(&config, NAME);
    let (here, there) =
        soon(async { tokio::join!(client.connect_with(server.local_addr(), &connect), server.accept()) })
            .await;
    let (here, there) = (here.expect("open"), there.expect("accepted"));
    let message: Vec<u8> = (0..500_000).map(|i| (i / 7) as u8).collect();
    let pass = async {
        for _ in 0..4 {
            here.send(&message, ORDERED).await.expect("open");
            let received = there.recv().await.expect("open");
            there.send(&received.bytes, ORDERED).await.expect("open");
            assert!(here.recv().await.expect("open").bytes == message);
        }
        here.disconnect().await;
    };
    soon(pass).await;
    assert_eq!(soon(there.closed()).await, DisconnectReason::Remote);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_untrusted_server_is_refused() {
    let ((options, _), (_, other)) = (options(), options());
    let (server, client) = (endpoint(options).await, endpoint(Options::client()).await);
    for (config, name) in [(&other, NAME), (&other, "elsewhere.example")] {
        let connect = trusting(config, name);
        let failure = soon(client.connect_with(server.local_addr(), &connect)).await.err();
        assert!(matches!(failure, Some(ConnectError::Failed(ConnectFailure::Tls(_)))), "{failure:?}");
    }
    until("both failed handshakes are counted", || server.stats().handshakes_failed >= 2).await;
    assert_eq!(server.try_accept().err(), Some(rakwire_extras::tcp::TryAcceptError::Empty));
}

/// A client without TLS and a silent client keep their slots only until the handshake timeout.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_without_a_handshake_loses_its_slot() {
    let (mut options, _) = options();
    options.handshake_timeout = Duration::from_millis(300);
    let server = endpoint(options).await;
    let mut silent = TcpStream::connect(server.local_addr()).await.expect("open");
    let mut plain = TcpStream::connect(server.local_addr()).await.expect("open");
    plain.write_all(&[0, 0, 0, 2, b'h', b'i']).await.expect("open");
    let mut bytes = Vec::new();
    // The bytes that rustls sends to a client without TLS, and a reset by the system, are not tested here.
    let _ = soon(plain.read_to_end(&mut bytes)).await;
    assert_eq!(soon(silent.read_to_end(&mut bytes)).await.expect("closed"), 0);
    until("the slots are free", || server.stats().incoming == 0).await;
    assert_eq!(server.stats().handshakes_failed, 2);
}

/// Without a TLS close alert, an attacker on the path may have truncated the stream.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_truncated_tls_stream_is_reported_as_a_loss() {
    let (options, config) = options();
    let server = endpoint(options).await;
    let socket = TcpStream::connect(server.local_addr()).await.expect("open");
    let name = ServerName::try_from(NAME).expect("a name");
    let connector = tokio_rustls::TlsConnector::from(config);
    let (stream, there) = tokio::join!(connector.connect(name, socket), server.accept());
    let (mut stream, there) = (stream.expect("open"), there.expect("accepted"));
    stream.write_all(&[0, 0, 0, 2, b'h', b'i']).await.expect("open");
    stream.flush().await.expect("open");
    assert_eq!(soon(there.recv()).await.expect("open").bytes, b"hi");
    let (mut socket, _) = stream.into_inner();
    socket.shutdown().await.expect("open");
    assert_eq!(soon(there.closed()).await, DisconnectReason::Lost(ErrorKind::UnexpectedEof));
}
