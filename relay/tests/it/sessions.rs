//! The traffic and the close of a client's session.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use proxy_header::{ParseConfig, ProxiedAddress};
use rakwire_relay::config::TargetSource;
use rakwire_relay::flow::{ProxyHeader, Source};
use rakwire_relay::protocol::ProtocolKind;
use rakwire_relay::{CloseKind, DropReason, Unreachable};
use tokio::time::sleep;
use tokio_tungstenite::tungstenite::Message;

use crate::support::{Client, Running, Server, config, eventually, game, within};

#[tokio::test]
async fn one_message_is_one_datagram_in_both_directions() {
    let server = Server::bind().await;
    let relay = Running::start(config(server.address())).await;
    let mut client = relay.client().await;
    let datagrams: Vec<Vec<u8>> = [1, 2, 100, 1400, 1471, 1472].map(|len: usize| vec![len as u8; len]).into();
    for datagram in &datagrams {
        client.send(datagram).await;
    }
    let mut from = None;
    for datagram in &datagrams {
        let (received, sender) = server.receive().await;
        assert_eq!(&received, datagram);
        assert_eq!(*from.get_or_insert(sender), sender, "the session has one socket");
    }
    let answers: Vec<Vec<u8>> = [0, 3, 1472, 1492, 2048].map(|len: usize| vec![7; len]).into();
    for answer in &answers {
        server.send(answer, from.unwrap()).await;
        assert_eq!(&client.receive().await, answer);
    }
    let snapshot = relay.snapshot();
    assert_eq!((snapshot.to_server.datagrams, snapshot.to_client.datagrams), (6, 5));
    assert_eq!(snapshot.to_server.bytes, 1 + 2 + 100 + 1400 + 1471 + 1472);
    relay.stop().await;
}

#[tokio::test]
async fn each_client_has_its_own_udp_socket() {
    let server = Server::bind().await;
    let relay = Running::start(config(server.address())).await;
    let (mut one, mut two) = (relay.client().await, relay.client().await);
    one.send(b"one").await;
    let (_, first) = server.receive().await;
    two.send(b"two").await;
    let (_, second) = server.receive().await;
    assert_ne!(first, second);
    server.send(b"for two", second).await;
    server.send(b"for one", first).await;
    assert_eq!(one.receive().await, b"for one");
    assert_eq!(two.receive().await, b"for two");
}

#[tokio::test]
async fn a_target_is_chosen_by_its_name() {
    let (one, two) = (Server::bind().await, Server::bind().await);
    let config = config(one.address()).with_target(format!("a b/ü={}", two.address()).parse().unwrap());
    let relay = Running::start(config).await;
    let mut client = Client::connect(relay.address, "/ws?target=a%20b%2F%C3%BC").await;
    client.send(b"hello").await;
    assert_eq!(two.receive().await.0, b"hello");
}

#[tokio::test]
async fn requests_without_a_valid_target_are_closed_with_a_text() {
    let relay = Running::start(config(Server::echo().await)).await;
    let cases = [
        ("/ws", 4400, "no target given; connect to /ws?target=NAME"),
        ("/ws?target=", 4400, "no target given; connect to /ws?target=NAME"),
        ("/ws?target=x", 4404, "unknown target 'x'; this relay offers: game"),
        ("/ws?target=127.0.0.1:22", 4404, "unknown target '127.0.0.1:22'; this relay offers: game"),
    ];
    for (path, code, text) in cases {
        assert_eq!(
            Client::connect(relay.address, path).await.closed().await,
            (code, text.to_owned()),
            "{path}"
        );
    }
    let long = format!("/ws?target={}", "%F0%9F%98%80".repeat(100));
    let (code, text) = Client::connect(relay.address, &long).await.closed().await;
    assert_eq!(code, 4404);
    assert!(text.len() <= 123 && text.ends_with("this relay offers: game"), "{text}");
    assert_eq!(relay.snapshot().closes(CloseKind::MissingTarget), 2);
    assert_eq!(relay.snapshot().closes(CloseKind::UnknownTarget), 3);
    assert_eq!(relay.snapshot().flows, 0);
}

#[tokio::test]
async fn text_messages_are_refused() {
    let relay = Running::start(config(Server::echo().await)).await;
    let mut client = relay.client().await;
    client.message(Message::text("hello")).await;
    assert_eq!(client.closed().await.0, 1003);
    assert_eq!(relay.snapshot().closes(CloseKind::TextMessage), 1);
}

#[tokio::test]
async fn an_empty_message_is_ignored_and_counted() {
    let server = Server::bind().await;
    let relay = Running::start(config(server.address())).await;
    let mut client = relay.client().await;
    client.send(b"").await;
    client.send(b"next").await;
    assert_eq!(server.receive().await.0, b"next");
    assert_eq!(relay.snapshot().drops(DropReason::EmptyMessage), 1);
}

#[tokio::test]
async fn a_frame_with_a_reserved_opcode_is_refused() {
    use tokio::io::AsyncWriteExt;

    let relay = Running::start(config(Server::echo().await)).await;
    let mut client = relay.client().await;
    // A frame with the reserved opcode 3.
    client.tcp().write_all(&[0x83, 0x80, 0, 0, 0, 0]).await.unwrap();
    assert_eq!(client.closed().await.0, 1002);
    assert_eq!(relay.snapshot().closes(CloseKind::ProtocolViolation), 1);
}

#[tokio::test]
async fn silence_in_both_directions_ends_a_session() {
    let mut config = config(Server::echo().await);
    config.limits.idle_timeout = Duration::from_millis(300);
    config.limits.ping_interval = config.limits.idle_timeout;
    let relay = Running::start(config).await;
    let (code, text) = relay.client().await.closed().await;
    assert_eq!((code, text.as_str()), (4408, "nothing sent or received for 300ms"));
    assert_eq!(relay.snapshot().closes(CloseKind::Idle), 1);
}

#[tokio::test]
async fn a_close_frame_from_the_client_is_answered() {
    let relay = Running::start(config(Server::echo().await)).await;
    let mut client = relay.client().await;
    within(client.0.close(None)).await.unwrap();
    // Without the answer, the stream would end with an error.
    while let Some(message) = within(futures_util::StreamExt::next(&mut client.0)).await {
        message.unwrap();
    }
    eventually("no client is counted", || relay.snapshot().clients == 0).await;
    assert_eq!(relay.snapshot().closes(CloseKind::ClientClosed), 1);
}

/// Starts a game server at an address that no other program takes while the server is down.
async fn bind_apart() -> Server {
    Server::bind_to(SocketAddr::from(([127, 0, 0, 77], 0))).await
}

#[tokio::test]
async fn a_session_survives_a_restart_of_the_game_server() {
    let server = bind_apart().await;
    let address = server.address();
    let relay = Running::start(config(address)).await;
    let mut client = relay.client().await;
    client.send(b"before").await;
    assert_eq!(server.receive().await.0, b"before");
    drop(server);
    // An ICMP error about one datagram is reported when a later datagram is sent.
    within(async {
        while relay.snapshot().unreachable(Unreachable::ClosedPort) == 0 {
            client.send(b"to no server").await;
            sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    let server = Server::bind_to(address).await;
    // An earlier datagram may still be in transit. This one must arrive although the socket has a pending error.
    client.send(b"after").await;
    let from = loop {
        let (datagram, from) = server.receive().await;
        if datagram == b"after" {
            break from;
        }
    };
    server.send(b"welcome back", from).await;
    assert_eq!(client.receive().await, b"welcome back");
}

#[tokio::test]
async fn a_shutdown_closes_clients() {
    let relay = Running::start(config(Server::echo().await)).await;
    let mut client = relay.client().await;
    client.send(b"x").await;
    client.receive().await;
    let counters = relay.counters.clone();
    let ((), (code, text)) = tokio::join!(relay.stop(), client.closed());
    assert_eq!((code, text.as_str()), (1001, "relay is shutting down"));
    assert_eq!(counters.snapshot().closes(CloseKind::ShuttingDown), 1);
    assert_eq!(counters.snapshot().clients, 0);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_loopback_game_server_sees_a_separate_address_per_client() {
    let server = Server::bind().await;
    let mut config = config(server.address());
    game(&mut config).source = TargetSource::LoopbackPool;
    let relay = Running::start(config).await;
    let mut seen = Vec::new();
    for _ in 0..2 {
        let mut client = relay.client().await;
        client.send(b"hello").await;
        let (_, from) = server.receive().await;
        server.send(b"welcome", from).await;
        assert_eq!(client.receive().await, b"welcome");
        seen.push(from.ip());
    }
    let client = IpAddr::from(Ipv4Addr::LOCALHOST);
    assert_eq!(seen[0], Source::LoopbackPool.address(client, server.address()).unwrap());
    assert_eq!(seen[1], seen[0], "the same client has the same address");
}

/// Returns the addresses in a PROXY header and its length, as parsed by an independent implementation.
fn read_header(datagram: &[u8]) -> (ProxiedAddress, usize) {
    let (header, length) = proxy_header::ProxyHeader::parse(datagram, ParseConfig::default()).unwrap();
    (header.proxied_address().unwrap().clone(), length)
}

#[tokio::test]
async fn a_game_server_receives_the_client_address() {
    let server = Server::bind().await;
    let mut config = config(server.address());
    game(&mut config).proxy_protocol = true;
    let relay = Running::start(config).await;
    let mut client = relay.client().await;
    let expected = ProxiedAddress::datagram(client.tcp().local_addr().unwrap(), server.address());
    client.send(b"hello").await;
    let (first, from) = server.receive().await;
    let (told, length) = read_header(&first);
    assert_eq!((told, &first[length..]), (expected, &b"hello"[..]));
    client.send(b"again").await;
    assert_eq!(server.receive().await.0, b"again", "only the first datagram has a header");
    server.send(b"welcome", from).await;
    assert_eq!(client.receive().await, b"welcome");
    for _ in 0..10 {
        client.send(b"more").await;
        assert_eq!(server.receive().await.0, b"more");
    }
}

#[test]
fn addresses_of_every_family_are_read_from_a_header() {
    for [client, server, announced_client, announced_server] in [
        ["192.0.2.7:5000", "127.0.0.1:19132", "192.0.2.7:5000", "127.0.0.1:19132"],
        ["[::ffff:192.0.2.7]:5000", "127.0.0.1:19132", "192.0.2.7:5000", "127.0.0.1:19132"],
        ["[2001:db8::7]:5000", "[2001:db8::1]:19132", "[2001:db8::7]:5000", "[2001:db8::1]:19132"],
        ["[2001:db8::7]:5000", "127.0.0.1:19132", "[2001:db8::7]:5000", "[::ffff:127.0.0.1]:19132"],
        ["192.0.2.7:5000", "[::1]:19132", "[::ffff:192.0.2.7]:5000", "[::1]:19132"],
    ] {
        let header = ProxyHeader { client: client.parse().unwrap(), server: server.parse().unwrap() };
        let mut datagram = Vec::new();
        header.write(&mut datagram);
        datagram.extend(b"hello");
        let expected =
            ProxiedAddress::datagram(announced_client.parse().unwrap(), announced_server.parse().unwrap());
        assert_eq!(read_header(&datagram), (expected, header.length()), "{client} to {server}");
        assert_eq!(datagram[header.length()..], *b"hello");
    }
}

/// The length of a request encodes the MTU. It must be that of the path, including the preceding header.
#[tokio::test]
async fn the_raknet_mtu_leaves_space_for_the_proxy_header() {
    const MAGIC: &[u8] = b"\x00\xff\xff\x00\xfe\xfe\xfe\xfe\xfd\xfd\xfd\xfd\x12\x34\x56\x78";

    let server = Server::bind().await;
    let mut config = config(server.address());
    game(&mut config).proxy_protocol = true;
    game(&mut config).kind = ProtocolKind::RakNet;
    let relay = Running::start(config).await;
    let mut client = relay.client().await;
    let mut request = [&b"\x05"[..], MAGIC].concat();
    request.resize(1_464, 0);
    client.send(&request).await;
    let first = loop {
        let (datagram, _) = server.receive().await;
        // The relay itself also sends pings.
        if datagram.first() == Some(&b'\r') {
            break datagram;
        }
    };
    assert_eq!((first.len(), &first[28..45]), (1_464, &request[..17]));
}

#[tokio::test]
async fn many_datagrams_arrive_one_by_one_in_both_directions() {
    let server = Server::bind().await;
    let relay = Running::start(config(server.address())).await;
    let mut client = relay.client().await;
    client.send(b"hello").await;
    let (_, from) = server.receive().await;
    for round in 0..20u8 {
        let datagrams: Vec<Vec<u8>> = (0..30u8)
            .map(|number| vec![number; if number % 7 == 6 { 40 } else { 100 + usize::from(round) }])
            .collect();
        for datagram in &datagrams {
            within(futures_util::SinkExt::feed(&mut client.0, Message::binary(datagram.clone())))
                .await
                .unwrap();
        }
        within(futures_util::SinkExt::flush(&mut client.0)).await.unwrap();
        for datagram in &datagrams {
            assert_eq!(&server.receive().await.0, datagram);
        }
        for datagram in &datagrams {
            server.send(datagram, from).await;
        }
        for datagram in &datagrams {
            assert_eq!(&client.receive().await, datagram);
        }
    }
}

/// The game server is absent from the start.
#[tokio::test]
async fn a_client_waits_for_an_absent_game_server() {
    let server = bind_apart().await;
    let address = server.address();
    drop(server);
    let relay = Running::start(config(address)).await;
    let mut client = relay.client().await;
    within(async {
        while relay.snapshot().unreachable(Unreachable::ClosedPort) < 3 {
            client.send(b"anybody there?").await;
            sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    let server = Server::bind_to(address).await;
    client.send(b"now").await;
    while server.receive().await.0 != b"now" {}
}

/// Returns the address of an absent game server.
async fn absent() -> SocketAddr {
    bind_apart().await.address()
}

#[tokio::test]
async fn an_absent_game_server_closes_the_client_if_requested() {
    let relay = Running::start(config(absent().await)).await;
    let mut client = Client::connect(relay.address, "/ws?target=game&unreachable=close").await;
    client.send(b"anybody there?").await;
    let (code, text) = client.closed().await;
    assert!(code == 4502 && text.starts_with("the game server cannot be reached"), "{code} {text}");
    assert_eq!(relay.snapshot().closes(CloseKind::ServerUnreachable), 1);
}

#[tokio::test]
async fn a_client_waits_through_a_game_server_restart() {
    let server = bind_apart().await;
    let address = server.address();
    let relay = Running::start(config(address)).await;
    let mut client = Client::connect(relay.address, "/ws?target=game&unreachable=close").await;
    client.send(b"hello").await;
    let from = server.receive_until(b"hello").await;
    server.send(b"welcome", from).await;
    assert_eq!(client.receive().await, b"welcome");
    drop(server);
    within(async {
        while relay.snapshot().unreachable(Unreachable::ClosedPort) == 0 {
            client.send(b"to no server").await;
            sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    let server = Server::bind_to(address).await;
    client.send(b"again").await;
    let from = server.receive_until(b"again").await;
    server.send(b"welcome back", from).await;
    assert_eq!(client.receive().await, b"welcome back");
}
