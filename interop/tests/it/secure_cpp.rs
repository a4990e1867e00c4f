//! Every pairing with the C++ RakNet that docs/secure.md lists, with and without RakNet's own security.

use std::sync::Arc;

use rakwire_native::secure::{ServerIdentity, ServerTrust, StaticKey, TokenKey, TokenVerifier};
use rakwire_native::{
    ConnectError, ConnectFailure, ConnectOptions, CookiePolicy, Delivery, Endpoint, Options, UsedTokenTable,
};
use serde_json::Value;

use crate::support::{Server, TIME_LIMIT, peer, run, text};

/// The C++ peer without security.
const PLAIN: &str = "cpp";
/// The C++ peer with RakNet's own security.
const SECURE: &str = "cpp-secure";
/// The outcomes of a client.
const CONNECTED: &str = "connected";
const REFUSED: &str = "connection attempt failed";
const OTHER_KEY: &str = "another public key";
const NO_SECURITY: &str = "client requires security";
const NO_ANSWER: &str = "time limit reached";
/// Enough attempts that no client stops before its time limit, so that a failure is the answer of the server.
const PATIENT: [&str; 4] = ["--attempts", "1000", "--timeout", "60"];
/// For a client that receives no answer.
const SHORT: &[&str] = &["--secure", "any", "--timeout", "3"];

/// The security of our server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ours {
    Plain,
    PlainWithoutCookies,
    Secure,
    Required,
    /// Connect tokens are required, although `requires_security` is not set.
    Tokens,
}

async fn serve(ours: Ours) -> Endpoint {
    let mut options = Options::server(8).expect("entropy");
    if ours == Ours::Plain {
        options.config.cookies = CookiePolicy::Required;
    }
    if ours == Ours::PlainWithoutCookies {
        options.config.cookies = CookiePolicy::Off;
    }
    if matches!(ours, Ours::Secure | Ours::Required | Ours::Tokens) {
        let mut identity = ServerIdentity::new(StaticKey::from_bytes([0x5E; 32]));
        identity.requires_security = ours == Ours::Required;
        identity.tokens = (ours == Ours::Tokens).then(|| {
            let keys = [TokenKey::from_bytes([0x70; 32])].into_iter().collect();
            TokenVerifier::shared(keys, Arc::new(UsedTokenTable::default()))
        });
        options.secure().expect("entropy").server = Some(identity);
    }
    Endpoint::bind("127.0.0.1:0", options).await.expect("a free port")
}

/// Echoes messages, and returns the number of connections. None may be encrypted.
async fn echo(server: &Endpoint) -> usize {
    let mut connections = 0;
    while let Some(connection) = server.accept().await {
        connections += 1;
        assert!(connection.secure_peer().is_none());
        while let Some(message) = connection.recv().await {
            // Fails if the client has already disconnected; only the client's verdict counts.
            let _ = connection.send(&message.bytes, message.delivery).await;
        }
    }
    connections
}

/// Returns the verdict of a C++ client: [`CONNECTED`] if it exchanged messages, otherwise its error.
async fn verdict_at(server: &Endpoint, name: &'static str, security: &'static [&'static str]) -> String {
    let address = server.local_addr().to_string();
    let run = move || run(&peer(name), &[&["client", &address], &PATIENT[..], security].concat());
    let output =
        tokio::task::spawn_blocking(run).await.expect("the task does not panic").expect("the program starts");
    let verdict: Value = serde_json::from_slice(&output.stdout).expect("one line of JSON");
    match verdict["error"].as_str() {
        Some(error) => error.to_owned(),
        None => {
            assert!(output.status.success(), "{verdict} {}", text(&output.stderr));
            assert_eq!((&verdict["connected"], &verdict["echoed"]), (&true.into(), &10.into()));
            CONNECTED.to_owned()
        }
    }
}

async fn clients_at(ours: Ours, expected: [(&'static str, &'static [&'static str], &str); 4]) {
    for (name, security, expected) in expected {
        let server = serve(ours).await;
        let (verdict, connections) = tokio::join!(
            async {
                let verdict = verdict_at(&server, name, security).await;
                server.close().await;
                verdict
            },
            echo(&server)
        );
        let case = format!("{name} {security:?} at {ours:?}");
        assert_eq!(verdict, expected, "{case}");
        assert_eq!(connections, usize::from(expected == CONNECTED), "{case}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn raknet_clients_are_refused_by_servers_that_require_security_or_tokens() {
    for ours in [Ours::Required, Ours::Tokens] {
        clients_at(
            ours,
            [
                (PLAIN, &[], REFUSED),
                (SECURE, &[], OTHER_KEY),
                (SECURE, &["--secure", "7"], OTHER_KEY),
                (SECURE, &["--secure", "any"], REFUSED),
            ],
        )
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_plain_raknet_clients_connect_to_a_server_that_offers_security() {
    clients_at(
        Ours::Secure,
        [
            (PLAIN, &[], CONNECTED),
            (SECURE, &[], OTHER_KEY),
            (SECURE, &["--secure", "7"], OTHER_KEY),
            (SECURE, &["--secure", "any"], REFUSED),
        ],
    )
    .await;
}

/// Reply 1 has one flag for cookies and for RakNet's own security. Our server sets it for a cookie. A client with
/// RakNet's security then expects a public key after the cookie, and therefore refuses the reply.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_plain_raknet_clients_connect_to_a_server_without_security() {
    clients_at(
        Ours::Plain,
        [
            (PLAIN, &[], CONNECTED),
            (SECURE, &[], OTHER_KEY),
            (SECURE, &["--secure", "7"], OTHER_KEY),
            (SECURE, SHORT, NO_ANSWER),
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn raknet_clients_without_a_required_key_connect_to_a_server_without_cookies() {
    clients_at(
        Ours::PlainWithoutCookies,
        [
            (PLAIN, &[], CONNECTED),
            (SECURE, &[], CONNECTED),
            (SECURE, &["--secure", "7"], NO_SECURITY),
            (SECURE, &["--secure", "any"], NO_SECURITY),
        ],
    )
    .await;
}

/// Connects our client, plain and secure, to a C++ server.
async fn dial(name: &str, security: &[&str], plain: Option<ConnectFailure>, secure: ConnectFailure) {
    let server = Server::start(name, security).expect("a C++ server");
    let mut options = Options::client().expect("entropy");
    options.config.protocol_version = 6;
    options.secure().expect("entropy");
    let client = Endpoint::bind("127.0.0.1:0", options).await.expect("a free port");
    let trusting = ConnectOptions { trust: Some(ServerTrust::Any), ..ConnectOptions::default() };
    match client.connect_with(server.address, &trusting).await {
        Err(ConnectError::Failed(failure)) => assert_eq!(failure, secure, "{name} {security:?}"),
        other => panic!("{name} {security:?}: {other:?}"),
    }
    match (client.connect(server.address).await, plain) {
        (Err(ConnectError::Failed(failure)), expected) => assert_eq!(Some(failure), expected),
        (Ok(connection), None) => {
            connection.send(b"\xFEhello", Delivery::RELIABLE_ORDERED).await.expect("an open connection");
            let echo = tokio::time::timeout(TIME_LIMIT, connection.recv()).await.expect("an echo in time");
            assert_eq!(echo.expect("an open connection").bytes, b"\xFEhello");
            assert!(connection.secure_peer().is_none());
        }
        other => panic!("{name} {security:?}: {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rakwire_clients_connect_unencrypted_to_raknet_servers_without_security() {
    for name in [PLAIN, SECURE] {
        dial(name, &[], None, ConnectFailure::ServerWithoutSecurity).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rakwire_clients_are_refused_by_servers_with_raknets_own_security() {
    let required = Some(ConnectFailure::SecurityRequired);
    dial(SECURE, &["--secure", "7"], required, ConnectFailure::PublicKeyMismatch).await;
}

/// Two peers with RakNet's own security connect to each other, so the failures above are caused by the pairing.
#[test]
fn a_raknet_client_with_the_right_key_connects_to_a_raknet_server() {
    let server = Server::start(SECURE, &["--secure", "7"]).expect("a C++ server");
    let address = server.address.to_string();
    for (name, security, expected) in [
        (SECURE, &["--secure", "7"][..], None),
        (SECURE, &["--secure", "any"], None),
        (SECURE, &["--secure", "8"], Some(OTHER_KEY)),
    ] {
        let output =
            run(&peer(name), &[&["client", &address], security].concat()).expect("the program starts");
        let verdict: Value = serde_json::from_slice(&output.stdout).expect("one line of JSON");
        assert_eq!(verdict["error"].as_str(), expected, "{name} {security:?}");
    }
}
