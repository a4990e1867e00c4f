//! Admission over real sockets: tokens, proxies and limits by address.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use rakwire_relay::flow::FLOW_PROTOCOL;
use rakwire_relay::token::{Claims, SigningKey};
use rakwire_relay::{CloseKind, Config, ConfigError, DropReason, Relay};
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::{self, Message};

use crate::support::{Client, Running, Server, config, directory, within};

/// Opens a WebSocket with additional headers. The error is the HTTP status with which the relay rejects it.
async fn open(relay: SocketAddr, path: &str, headers: &[(&'static str, &str)]) -> Result<Client, u16> {
    let mut request = format!("ws://{relay}{path}").into_client_request().unwrap();
    for (name, value) in headers {
        request.headers_mut().append(*name, value.parse().unwrap());
    }
    match within(connect_async(request)).await {
        Ok((socket, _)) => Ok(Client(socket)),
        Err(tungstenite::Error::Http(response)) => Err(response.status().as_u16()),
        Err(error) => panic!("{error}"),
    }
}

/// Returns true if a client's datagram is echoed.
async fn echoes(mut client: Client) -> bool {
    client.send(b"hello").await;
    client.receive().await == b"hello"
}

pub(crate) fn key_file(name: &str, key: &SigningKey) -> PathBuf {
    let path = directory("tokens").join(name);
    fs::write(&path, key.public_text().unwrap_or_else(|| key.to_text())).unwrap();
    path
}

pub(crate) fn token(key: &SigningKey, change: impl FnOnce(&mut Claims)) -> String {
    let mut claims = Claims::new("game", SystemTime::now() + Duration::from_secs(60)).unwrap();
    change(&mut claims);
    key.sign(&claims).unwrap()
}

async fn with_tokens(name: &str, key: &SigningKey, change: impl FnOnce(&mut Config)) -> Running {
    let mut config = config(Server::echo().await);
    config.tokens.keys = vec![key_file(name, key)];
    change(&mut config);
    Running::start(config).await
}

#[tokio::test]
async fn a_token_in_the_query_or_a_subprotocol_admits_a_client() {
    let key = SigningKey::ed25519().unwrap();
    let relay = with_tokens("opens", &key, |_| {}).await;
    let token = token(&key, |_| {});
    assert!(echoes(Client::connect(relay.address, &format!("/ws?target=game&token={token}")).await).await);
    let offer = format!("{FLOW_PROTOCOL}, rakwire.token.{token}");
    let mut client =
        open(relay.address, "/ws?target=game", &[("sec-websocket-protocol", &offer)]).await.unwrap();
    client.send(b"hello").await;
    assert_eq!(client.datagram().await, b"hello");
    let code = |path: String| async move { Client::connect(relay.address, &path).await.closed().await };
    assert_eq!(code("/ws?target=game".to_owned()).await, (4401, "a token is needed".to_owned()));
    let forged = format!("{}A", &token[..token.len() - 1]);
    let text = "the token is not valid".to_owned();
    assert_eq!(code(format!("/ws?target=game&token={forged}B")).await, (4401, text));
    assert_eq!(relay.snapshot().closes(CloseKind::TokenRefused), 2);
    assert_eq!(relay.snapshot().flows, 2);
}

/// All flows with one token share the rate of one client.
#[tokio::test]
async fn the_flows_of_one_token_share_its_rate() {
    let key = SigningKey::ed25519().unwrap();
    let relay = with_tokens("share", &key, |config| config.limits.datagrams_per_second = 1).await;
    let tokens = [(); 2].map(|()| token(&key, |_| {}));
    let begin = Instant::now();
    let mut clients = Vec::new();
    for token in [&tokens[0], &tokens[0], &tokens[1]] {
        clients.push(Client::connect(relay.address, &format!("/ws?target=game&token={token}")).await);
    }
    for client in &mut clients {
        for _ in 0..10 {
            client.send(b"hello").await;
        }
    }
    // The relay has handled all datagrams from a client when it handles this message.
    for mut client in clients {
        client.message(Message::text("end")).await;
        assert_eq!(client.closed().await.0, 1003);
    }
    let snapshot = relay.snapshot();
    let passed = snapshot.to_server.datagrams;
    assert_eq!(passed + snapshot.drops(DropReason::RateLimited), 30, "{snapshot}");
    // Each of the two tokens admits one datagram at the start and another each second.
    let most = 2 * (1 + begin.elapsed().as_secs());
    assert!((2..=most).contains(&passed), "{snapshot}");
}

#[tokio::test]
async fn a_token_for_one_address_is_refused_at_another() {
    let key = SigningKey::hmac_sha256().unwrap();
    let relay = with_tokens("stolen", &key, |config| {
        config.admission.trusted_proxies = vec!["127.0.0.1/32".parse().unwrap()];
        config.admission.allow_any_origin = true;
    })
    .await;
    let path =
        format!("/ws?target=game&token={}", token(&key, |claims| claims.addr = "192.0.2.1/32".parse().ok()));
    let from = async |client: &str| open(relay.address, &path, &[("x-forwarded-for", client)]).await;
    assert!(echoes(from("192.0.2.1").await.unwrap()).await);
    for thief in ["192.0.2.2", "192.0.2.1, 198.51.100.7"] {
        let closed = open(relay.address, &path, &[("x-forwarded-for", thief)]).await.unwrap().closed().await;
        assert_eq!(closed, (4401, "the token is for another address".to_owned()), "{thief}");
    }
}

#[tokio::test]
async fn a_single_use_token_admits_one_connection() {
    let key = SigningKey::ed25519().unwrap();
    let relay = with_tokens("once", &key, |config| config.tokens.single_use = true).await;
    let path = format!("/ws?target=game&token={}", token(&key, |_| {}));
    assert!(echoes(Client::connect(relay.address, &path).await).await);
    let closed = Client::connect(relay.address, &path).await.closed().await;
    assert_eq!(closed, (4401, "the token has been used".to_owned()));
}

/// The secret of the flow replaces the token, which may have expired or been used since the flow was opened.
#[tokio::test]
async fn a_client_resumes_its_flow_without_another_token() {
    let key = SigningKey::ed25519().unwrap();
    let relay = with_tokens("back", &key, |config| config.tokens.single_use = true).await;
    let path = format!("/ws?target=game&token={}", token(&key, |_| {}));
    let (client, flow) = Client::with_control(relay.address, &path).await;
    drop(client);
    let mut other = flow.resume.clone();
    other.replace_range(..1, if other.starts_with('A') { "B" } else { "A" });
    let path = |secret: &str| format!("/ws?target=game&resume={secret}");
    let closed = Client::connect_with_control(relay.address, &path(&other)).await.closed().await;
    assert_eq!(closed, (4401, "a token is needed".to_owned()));
    let (mut client, flow) = Client::with_control(relay.address, &path(&flow.resume)).await;
    assert!(flow.resumed);
    client.send(b"hello").await;
    assert_eq!(client.datagram().await, b"hello");
}

#[tokio::test]
async fn headers_of_untrusted_peers_are_ignored() {
    let bans = directory("bans").join("peers");
    fs::write(&bans, "192.0.2.0/24\n").unwrap();
    let mut config = config(Server::echo().await);
    config.admission.bans = Some(bans);
    let relay = Running::start(config.clone()).await;
    for header in ["x-forwarded-for", "forwarded", "x-real-ip"] {
        let value = if header == "forwarded" { "for=192.0.2.1" } else { "192.0.2.1" };
        assert!(
            echoes(open(relay.address, "/ws?target=game", &[(header, value)]).await.unwrap()).await,
            "{header}"
        );
    }
    config.admission.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
    config.admission.allow_any_origin = true;
    let relay = Running::start(config).await;
    let open_as = async |value: &str| {
        open(relay.address, "/ws?target=game", &[("x-forwarded-for", value)]).await.unwrap()
    };
    let told = (4403, "this address is banned".to_owned());
    assert_eq!(open_as("192.0.2.1").await.closed().await, told);
    assert_eq!(
        open_as("198.51.100.1, 192.0.2.1").await.closed().await,
        told,
        "the first entry is from the client, and only the last counts"
    );
    assert!(echoes(open_as("192.0.2.1, 198.51.100.1").await).await);
    assert_eq!(relay.snapshot().bans_refused, 2);
}

/// The limits of an address apply to a client whose header is missing or malformed. They do not apply to the proxy by
/// default.
#[tokio::test]
async fn clients_without_a_valid_forwarded_header_are_limited() {
    let mut config = config(Server::echo().await);
    config.admission.trusted_proxies = vec!["127.0.0.1/32".parse().unwrap()];
    config.admission.allow_any_origin = true;
    config.clients.per_address = 2;
    let relay = Running::start(config).await;
    let open = async |lines: &[&[u8]]| {
        let mut request = format!("ws://{}/ws?target=game", relay.address).into_client_request().unwrap();
        for line in lines {
            request.headers_mut().append("x-forwarded-for", HeaderValue::from_bytes(line).unwrap());
        }
        Client(within(connect_async(request)).await.unwrap().0)
    };
    let mut connected = Vec::new();
    for lines in [&[&b"\xff"[..]][..], &[]] {
        let mut client = open(lines).await;
        client.send(b"x").await;
        client.receive().await;
        connected.push(client);
    }
    for lines in [&[&b"\xff"[..]][..], &[], &[b"unknown"]] {
        assert_eq!(open(lines).await.closed().await.0, 4429, "{lines:?}");
    }
    // The entry that the proxy has appended is used.
    assert!(echoes(open(&[b"\xff, 203.0.113.9"]).await).await);
    assert!(echoes(open(&[b"\xff", b"203.0.113.9"]).await).await);
}

/// A proxy on this machine forwards clients of other machines, so its loopback address does not imply that a client is
/// local.
#[tokio::test]
async fn a_relay_behind_a_proxy_requires_configured_origins() {
    let mut config = config(Server::echo().await);
    config.admission.trusted_proxies = vec!["127.0.0.1/32".parse().unwrap()];
    let error = Relay::bind(config.clone()).await.unwrap_err().to_string();
    assert!(error.contains("admission.allow_origins") && error.lines().count() == 1, "{error}");
    config.admission.allow_origins = vec!["https://play.example.org".parse().unwrap()];
    let relay = Running::start(config).await;
    let (code, text) = open(relay.address, "/ws?target=game", &[]).await.unwrap().closed().await;
    assert!(code == 4403 && text.contains("the request has no Origin header"), "{code} {text}");
    let origin = [("origin", "https://play.example.org")];
    assert!(echoes(open(relay.address, "/ws?target=game", &origin).await.unwrap()).await);
}

/// An inherited socket may be bound to an address other than the configured one.
#[tokio::test]
async fn an_inherited_public_socket_requires_configured_origins() {
    let config = config(Server::echo().await);
    assert!(config.listen.address().unwrap().ip().is_loopback());
    let socket = || std::net::TcpListener::bind("0.0.0.0:0").unwrap();
    let error = Relay::bind_on(config.clone(), Some(socket())).await.unwrap_err();
    assert!(
        matches!(error, ConfigError::OriginsRequired(address) if address.ip().is_unspecified()),
        "{error}"
    );
    let mut decided = config;
    decided.admission.allow_any_origin = true;
    assert!(Relay::bind_on(decided, Some(socket())).await.is_ok());
}

#[tokio::test]
async fn a_flood_from_one_prefix_does_not_affect_another() {
    let mut config = config(Server::echo().await);
    config.admission.trusted_proxies = vec!["127.0.0.1/32".parse().unwrap()];
    config.admission.allow_any_origin = true;
    (config.clients.per_address, config.clients.per_prefix) = (5, 5);
    config.limits.max_clients = 10;
    let relay = Running::start(config).await;
    let mut connected = Vec::new();
    let mut refused = 0;
    for number in 1..=20 {
        let from = format!("192.0.2.{number}");
        let mut client = open(relay.address, "/ws?target=game", &[("x-forwarded-for", &from)]).await.unwrap();
        if number <= 5 {
            client.send(b"x").await;
            client.receive().await;
            connected.push(client);
        } else {
            assert_eq!(client.closed().await.0, 4429, "{from}");
            refused += 1;
        }
    }
    assert_eq!(relay.snapshot().closes(CloseKind::AddressLimit), refused);
    for other in ["192.0.3.1", "2001:db8::1"] {
        let client = open(relay.address, "/ws?target=game", &[("x-forwarded-for", other)]).await.unwrap();
        assert!(echoes(client).await, "{other}");
    }
}

#[tokio::test]
async fn an_address_that_connects_too_fast_is_refused() {
    let mut config = config(Server::echo().await);
    config.admission.exempt = Vec::new();
    config.clients.rate_per_address = 1;
    config.clients.burst_per_address = 1;
    let relay = Running::start(config).await;
    for _ in 0..200 {
        drop(tokio::net::TcpStream::connect(relay.address).await.unwrap());
    }
    // The limit admits four times the burst, and then four connections per minute.
    crate::support::eventually("more than 100 connections are refused", || {
        relay.snapshot().connections_refused > 100
    })
    .await;
}

#[tokio::test]
async fn forbidden_addresses_are_refused_after_resolution() {
    for address in [
        "169.254.169.254:80",
        "[::ffff:169.254.169.254]:80",
        "[::169.254.169.254]:80",
        "[64:ff9b::169.254.169.254]:80",
        "[2002:a9fe:a9fe::]:80",
        "[fd00:ec2::254]:80",
        "[fe80::1]:80",
        "224.0.0.1:80",
        "[ff02::1]:80",
        "0.0.0.0:80",
        "[::]:80",
        "255.255.255.255:80",
        "100.100.100.200:80",
        // Other notations of loopback addresses, which the system's resolver accepts.
        "0x7f.1:80",
        "2852039166:80",
        "0:80",
    ] {
        let target = format!("game={address}").parse().unwrap();
        let config = Config::new("127.0.0.1:0".parse().unwrap()).with_target(target);
        let error = Relay::bind(config).await.err();
        let refused =
            matches!(error, Some(ConfigError::UnusableAddress { .. } | ConfigError::Unresolvable { .. }));
        assert!(refused, "{address}: {error:?}");
    }
    let localhost =
        Config::new("127.0.0.1:0".parse().unwrap()).with_target("game=localhost:1".parse().unwrap());
    assert!(Relay::bind(localhost).await.is_ok());
}
