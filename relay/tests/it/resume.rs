//! Clients that resume their flow, and the control messages that they receive.

use std::time::Duration;

use rakwire_relay::flow::{FLOW_PROTOCOL, FLOW_REQUEST};
use rakwire_relay::{CloseKind, DropReason};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::sleep;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use crate::support::{Client, Flow, Running, Server, TIMEOUT, config, eventually, game, within};

/// A relay, its game server, and a client with a flow.
pub(crate) struct Game {
    pub(crate) relay: Running,
    pub(crate) server: Server,
    pub(crate) client: Client,
    pub(crate) flow: Flow,
    /// The client's address as the server sees it.
    pub(crate) from: std::net::SocketAddr,
}

impl Game {
    async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    pub(crate) async fn start_with(change: impl FnOnce(&mut rakwire_relay::Config)) -> Self {
        let server = Server::bind().await;
        let mut config = config(server.address());
        change(&mut config);
        let relay = Running::start(config).await;
        let (mut client, flow) = Client::with_control(relay.address, "/ws?target=game").await;
        client.send(b"hello").await;
        let (_, from) = server.receive().await;
        Self { relay, server, client, flow, from }
    }

    /// Connects the client again, with the secret of its flow.
    async fn come_back(&self) -> (Client, Flow) {
        let path = format!("/ws?target=game&resume={}", self.flow.resume);
        Client::with_control(self.relay.address, &path).await
    }

    async fn detached(&self) {
        eventually("the flow is detached", || self.relay.snapshot().all().detached == 1).await;
    }
}

#[tokio::test]
async fn a_returning_client_resumes_its_flow() {
    let mut game = Game::start_with(|config| game(config).queue_age = TIMEOUT).await;
    assert_eq!(
        (game.flow.resumed, game.flow.resume_within_ms, game.flow.max_datagram),
        (false, 30_000, 1472)
    );
    assert_eq!(game.flow.resume.len(), 22);
    let (other, _) = Client::with_control(game.relay.address, "/ws?target=game").await;
    drop(std::mem::replace(&mut game.client, other));
    game.detached().await;
    assert_eq!(game.relay.snapshot().closes(CloseKind::ClientVanished), 1);

    game.server.send(b"while away", game.from).await;
    let (mut client, flow) = game.come_back().await;
    assert_eq!(flow, Flow { resumed: true, ..game.flow.clone() });
    assert_eq!(client.receive().await, b"while away");
    client.send(b"here again").await;
    assert_eq!(game.server.receive().await, (b"here again".to_vec(), game.from));
    let snapshot = game.relay.snapshot();
    assert_eq!((snapshot.flows, snapshot.all().resumed, snapshot.all().detached), (2, 1, 0));
}

/// The next datagram is forwarded although the client has read only the response to its upgrade.
#[tokio::test]
async fn a_resumption_takes_one_round_trip_after_the_tcp_handshake() {
    let mut game = Game::start().await;
    let (other, _) = Client::with_control(game.relay.address, "/ws?target=game").await;
    drop(std::mem::replace(&mut game.client, other));
    game.detached().await;
    let mut stream = TcpStream::connect(game.relay.address).await.unwrap();
    let request = format!(
        "GET /ws?target=game&resume={} HTTP/1.1\r\nHost: relay\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\
         Sec-WebSocket-Protocol: {FLOW_PROTOCOL}\r\n\r\n",
        game.flow.resume
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    // Reads up to the end of the response, and not beyond.
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        answer.push(within(stream.read_u8()).await.unwrap());
    }
    assert!(answer.starts_with(b"HTTP/1.1 101 "), "{}", String::from_utf8_lossy(&answer));
    // A binary message with a zero mask.
    let message = [&[0x82, 0x80 | 10, 0, 0, 0, 0][..], b"here again"].concat();
    stream.write_all(&message).await.unwrap();
    assert_eq!(game.server.receive().await, (b"here again".to_vec(), game.from));
}

/// Players who share an address may all lose their connections, and return, at the same time.
#[tokio::test]
async fn a_returning_client_does_not_count_as_new() {
    let game = Game::start_with(|config| {
        config.admission.exempt.clear();
        config.clients.rate_per_address = 1;
        config.clients.burst_per_address = 2;
    })
    .await;
    let path = |secret: &str, more: &str| format!("/ws?target=game&resume={secret}{more}");
    let (_second, _) = Client::with_control(game.relay.address, "/ws?target=game").await;
    let new = Client::connect_with_control(game.relay.address, "/ws?target=game").await;
    assert_eq!(new.closed().await.0, 4429);
    let (_client, flow) = game.come_back().await;
    assert!(flow.resumed);
    let mut deferred =
        Client::connect_with_control(game.relay.address, &path(&game.flow.resume, "&defer=1")).await;
    deferred.message(Message::text(FLOW_REQUEST)).await;
    assert!(deferred.text().await.contains(r#""resumed":true"#));
    // A secret that matches no flow is treated as no secret.
    for more in ["", "&defer=1"] {
        let mut foreign =
            Client::connect_with_control(game.relay.address, &path("AAAAAAAAAAAAAAAAAAAAAA", more)).await;
        if !more.is_empty() {
            foreign.message(Message::text(FLOW_REQUEST)).await;
        }
        assert_eq!(foreign.closed().await.0, 4429, "{more}");
    }
}

/// The number of attempts per secret is limited, because each could take over the flow, or require the verification of
/// a signature.
#[tokio::test]
async fn resumptions_of_one_flow_are_limited() {
    let game = Game::start_with(|config| {
        config.admission.exempt.clear();
        config.clients.rate_per_address = 1;
        // The limit for connections is four times as high.
        config.clients.burst_per_address = 4;
    })
    .await;
    let mut others = Vec::new();
    for _ in 0..3 {
        others.push(Client::with_control(game.relay.address, "/ws?target=game").await);
    }
    let mut latest = game.come_back().await;
    for _ in 1..10 {
        latest = game.come_back().await;
        assert!(latest.1.resumed);
    }
    let path = format!("/ws?target=game&resume={}", game.flow.resume);
    let refused = Client::connect_with_control(game.relay.address, &path).await;
    assert_eq!(refused.closed().await.0, 4429);
    latest.0.send(b"still here").await;
    assert_eq!(game.server.receive().await, (b"still here".to_vec(), game.from));
}

/// A proxy that restarts, or loses one of its connections, closes the other with one of these codes.
#[tokio::test]
async fn a_flow_waits_for_its_client_after_the_close_codes_of_proxies() {
    let mut game = Game::start().await;
    for code in [1011, 1012, 1013, 1014] {
        let frame = CloseFrame { code: code.into(), reason: "".into() };
        within(game.client.0.close(Some(frame))).await.unwrap();
        game.detached().await;
        let (client, flow) = game.come_back().await;
        assert!(flow.resumed, "{code}");
        game.client = client;
    }
    game.client.send(b"here again").await;
    assert_eq!(game.server.receive().await, (b"here again".to_vec(), game.from));
}

/// Browsers send "going away" when a page is closed, and proxies send it when they restart.
#[tokio::test]
async fn close_code_1001_ends_a_flow_unless_a_proxy_may_have_sent_it() {
    for is_proxy_trusted in [false, true] {
        let mut game = Game::start_with(|config| {
            if is_proxy_trusted {
                config.admission.trusted_proxies = vec!["127.0.0.1/32".parse().unwrap()];
                config.admission.allow_any_origin = true;
            }
        })
        .await;
        let frame = CloseFrame { code: CloseCode::Away, reason: "".into() };
        within(game.client.0.close(Some(frame))).await.unwrap();
        let clients = || game.relay.snapshot().clients;
        eventually("no client is counted", || clients() == 0).await;
        assert_eq!(game.come_back().await.1.resumed, is_proxy_trusted);
    }
}

/// The address of the client has changed, and the relay has not noticed the loss of the old connection.
#[tokio::test]
async fn a_new_connection_replaces_the_old_connection() {
    let game = Game::start().await;
    let (mut client, flow) = game.come_back().await;
    assert!(flow.resumed);
    assert_eq!(game.client.closed().await, (4409, "resumed by another connection".to_owned()));
    client.send(b"from elsewhere").await;
    assert_eq!(game.server.receive().await, (b"from elsewhere".to_vec(), game.from));
    assert_eq!(game.relay.snapshot().clients, 1);
    assert_eq!(game.relay.snapshot().closes(CloseKind::Resumed), 1);
}

#[tokio::test]
async fn a_secret_matches_one_flow_and_target() {
    let other = Server::bind().await;
    let mut game = Game::start_with(|config| {
        *config = config.clone().with_target(format!("other={}", other.address()).parse().unwrap());
    })
    .await;
    let secret = game.flow.resume.clone();
    for path in [
        format!("/ws?target=other&resume={secret}"),
        "/ws?target=game&resume=AAAAAAAAAAAAAAAAAAAAAA".to_owned(),
        format!("/ws?target=game&resume={secret}A"),
        "/ws?target=game&resume=".to_owned(),
    ] {
        let (_, flow) = Client::with_control(game.relay.address, &path).await;
        assert!(!flow.resumed && flow.resume != secret, "{path}");
    }
    // A flow without control messages cannot be resumed.
    let mut plain = Client::connect(game.relay.address, &format!("/ws?target=game&resume={secret}")).await;
    plain.send(b"plain").await;
    assert_ne!(game.server.receive().await.1, game.from);
    game.client.send(b"still here").await;
    assert_eq!(game.server.receive().await, (b"still here".to_vec(), game.from));
    assert_eq!(game.relay.snapshot().all().resumed, 0);
}

#[tokio::test]
async fn a_client_that_closes_its_connection_ends_its_flow() {
    let mut game = Game::start().await;
    within(game.client.0.close(None)).await.unwrap();
    eventually("the flow has ended", || game.relay.snapshot().clients == 0).await;
    assert!(!game.come_back().await.1.resumed);
    assert_eq!(game.relay.snapshot().all().detached, 0);
}

#[tokio::test]
async fn a_flow_waits_no_longer_than_configured() {
    let game = Game::start_with(|config| game(config).resume_within = Duration::from_millis(300)).await;
    let Game { relay, client, flow, .. } = game;
    assert_eq!(flow.resume_within_ms, 300);
    drop(client);
    eventually("the flow is detached", || relay.snapshot().all().detached == 1).await;
    eventually("the flow has ended", || relay.snapshot().all().detached == 0).await;
    let path = format!("/ws?target=game&resume={}", flow.resume);
    assert!(!Client::with_control(relay.address, &path).await.1.resumed);
    relay.stop().await;
}

#[tokio::test]
async fn a_flow_without_control_messages_ends_with_its_connection() {
    let relay = Running::start(config(Server::echo().await)).await;
    let mut client = relay.client().await;
    client.send(b"first").await;
    assert_eq!(client.receive().await, b"first", "no control message precedes it");
    drop(client);
    eventually("the flow has ended", || relay.snapshot().clients == 0).await;
    assert_eq!(relay.snapshot().all().detached, 0);
}

#[tokio::test]
async fn a_detached_flow_is_evicted_for_a_client_of_a_full_relay() {
    let game = Game::start_with(|config| config.limits.max_clients = 2).await;
    let Game { relay, client, flow, server, .. } = game;
    let (second, _) = Client::with_control(relay.address, "/ws?target=game").await;
    drop(client);
    eventually("the flow is detached", || relay.snapshot().all().detached == 1).await;
    let (mut third, _) = Client::with_control(relay.address, "/ws?target=game").await;
    third.send(b"third").await;
    assert_eq!(server.receive().await.0, b"third");
    let path = format!("/ws?target=game&resume={}", flow.resume);
    let late = Client::connect_with_control(relay.address, &path).await;
    assert_eq!(
        late.closed().await.0,
        1013,
        "its flow was evicted, and both slots are taken by connected clients"
    );
    drop(second);
}

#[tokio::test]
async fn a_silent_client_can_resume() {
    let game = Game::start_with(|config| config.limits.ping_interval = Duration::from_secs(2)).await;
    game.detached().await;
    assert_eq!(game.relay.snapshot().closes(CloseKind::Unresponsive), 1);
    assert!(game.come_back().await.1.resumed);
}

#[tokio::test]
async fn a_shutdown_does_not_wait_for_absent_clients() {
    // This time is longer than the test waits for the shutdown.
    let long = 10 * TIMEOUT;
    let game = Game::start_with(|config| {
        config.limits.idle_timeout = long;
        game(config).resume_within = long;
    })
    .await;
    let Game { relay, client, .. } = game;
    drop(client);
    eventually("the flow is detached", || relay.snapshot().all().detached == 1).await;
    let counters = relay.counters.clone();
    relay.stop().await;
    eventually("the flow has ended", || counters.snapshot().all().detached == 0).await;
}

#[tokio::test]
async fn drops_are_reported_to_clients_and_again_after_a_resumption() {
    let mut game = Game::start().await;
    game.client.send(b"").await;
    game.server.send(&[0; 3_000], game.from).await;
    let expected = r#"{"type":"drops","to_client":{"too_big":1},"to_server":{"empty_message":1}}"#;
    while game.client.text().await != expected {}

    // After a resumption, all reports are sent again although nothing has changed.
    let (mut client, _) = game.come_back().await;
    assert_eq!(client.text().await, expected);
}

#[tokio::test]
async fn drops_are_reported_to_a_slow_client() {
    let mut game = Game::start().await;
    let dropped = || {
        let snapshot = game.relay.snapshot();
        snapshot.drops(DropReason::ClientQueueFull) + snapshot.drops(DropReason::ClientTooOld)
    };
    within(async {
        while dropped() < 1000 {
            for _ in 0..50 {
                game.server.send(&[5; 1400], game.from).await;
            }
            sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    within(async {
        loop {
            let text = game.client.text().await;
            let report: serde_json::Value = serde_json::from_str(&text).unwrap();
            let counts = report["to_client"].as_object().unwrap();
            let sum: u64 = counts.values().map(|count| count.as_u64().unwrap()).sum();
            // Queued datagrams may also be dropped, which a later message reports.
            if sum == dropped() {
                return;
            }
        }
    })
    .await;
}

#[tokio::test]
async fn traffic_and_drops_are_counted_by_target() {
    let (one, two) = (Server::echo().await, Server::echo().await);
    let relay = Running::start(config(one).with_target(format!("other={two}").parse().unwrap())).await;
    let mut client = relay.client().await;
    let mut other = Client::connect(relay.address, "/ws?target=other").await;
    client.send(b"").await;
    for _ in 0..2 {
        client.send(b"12345").await;
        client.receive().await;
    }
    other.send(b"1").await;
    other.receive().await;
    let snapshot = relay.snapshot();
    let counts: Vec<_> = snapshot
        .targets()
        .map(|(name, counts)| {
            (name.as_str(), counts.clients, counts.to_server.bytes, counts.drops(DropReason::EmptyMessage))
        })
        .collect();
    assert_eq!(counts, [("game", 1, 10, 1), ("other", 1, 1, 0)]);
}
