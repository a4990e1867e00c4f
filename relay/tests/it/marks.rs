//! Bytes by which the relay and game servers know something, in datagrams of those that must not write them: by each transport and in
//! each direction.

use std::net::SocketAddr;

use rakwire_relay::flow::{CONTROL_PREFIX, FLOW_REQUEST, ProxyHeader};
use rakwire_relay::{DropReason, Snapshot};

use crate::support::{Client, Running, Server, config, game, repeated};
use crate::webtransport::Session;

const TRANSPORTS: [&str; 2] = ["WebSocket", "WebTransport"];

enum Player {
    WebSocket(Box<Client>),
    WebTransport(Box<Session>),
}

impl Player {
    async fn connect(relay: &Running, transport: &str) -> Self {
        match transport {
            "WebSocket" => Self::WebSocket(Box::new(relay.client().await)),
            _ => Self::WebTransport(Box::new(Session::game(relay.address).await)),
        }
    }

    async fn send(&mut self, datagram: &[u8]) {
        match self {
            Self::WebSocket(client) => client.send(datagram).await,
            Self::WebTransport(session) => session.send(datagram),
        }
    }

    async fn receive(&mut self) -> Vec<u8> {
        match self {
            Self::WebSocket(client) => client.receive().await,
            Self::WebTransport(session) => session.receive().await.into(),
        }
    }
}

/// What is done with a datagram.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Fate {
    Passes,
    Dropped(DropReason),
}

use Fate::{Dropped, Passes};

/// A header that names another address.
fn proxy_header(server: SocketAddr) -> Vec<u8> {
    let mut header = Vec::new();
    ProxyHeader { client: "192.0.2.1:1".parse().unwrap(), server }.write(&mut header);
    header
}

fn check_count(snapshot: &Snapshot, fate: Fate, case: &str) {
    if let Dropped(reason) = fate {
        assert!(snapshot.drops(reason) > 0, "{case}: not counted");
    }
}

/// Of a client: does it come to the game server before what the client sends afterwards?
async fn to_server(transport: &str, mark: &[u8], has_header: bool, fate: Fate) {
    let case = format!("{transport} to the server, header {has_header}: {}", mark.escape_ascii());
    let server = Server::bind().await;
    let mut config = config(server.address());
    game(&mut config).proxy_protocol = has_header;
    let relay = Running::start(config).await;
    let mut player = Player::connect(&relay, transport).await;
    // Before the game server has answered, as after a restart, and afterwards.
    for is_answered in [false, true] {
        let (mut arrived, end) = (Vec::new(), if is_answered { b"end 2" } else { b"end 1" });
        let sent = async || {
            player.send(mark).await;
            player.send(end).await;
        };
        let ended = async {
            loop {
                let (datagram, from) = server.receive().await;
                if datagram.ends_with(end) {
                    break from;
                }
                arrived.push(datagram);
            }
        };
        let from = repeated(sent, ended).await;
        // A header of the relay may stand before it.
        let has_passed = arrived.iter().any(|datagram| datagram.ends_with(mark));
        assert_eq!(has_passed, fate == Passes, "{case}, answered: {is_answered}");
        repeated(async || server.send(b"answer", from).await, player.receive()).await;
    }
    check_count(&relay.snapshot(), fate, &case);
    relay.stop().await;
}

/// Of the game server.
async fn to_client(transport: &str, mark: &[u8], fate: Fate) {
    let case = format!("{transport} to the client: {}", mark.escape_ascii());
    let server = Server::bind().await;
    let relay = Running::start(config(server.address())).await;
    let mut player = Player::connect(&relay, transport).await;
    let (_, from) = repeated(async || player.send(b"hello").await, server.receive()).await;
    let mut arrived = Vec::new();
    let sent = async || {
        server.send(mark, from).await;
        server.send(b"end", from).await;
    };
    let ended = async {
        loop {
            let datagram = player.receive().await;
            if datagram == b"end" {
                break;
            }
            arrived.push(datagram);
        }
    };
    repeated(sent, ended).await;
    assert_eq!(arrived.iter().any(|datagram| datagram == mark), fate == Passes, "{case}");
    check_count(&relay.snapshot(), fate, &case);
    relay.stop().await;
}

#[tokio::test]
async fn marks_count_only_from_those_that_may_write_them() {
    let address = "127.0.0.1:1".parse().unwrap();
    let forged = [&proxy_header(address)[..], b"payload"].concat();
    // Text frames carry control messages of WebSockets, prefixed datagrams those of WebTransport.
    let prefixed = [CONTROL_PREFIX, br#"{"type":"flow","resume":"evil"}"#].concat();
    for transport in TRANSPORTS {
        to_server(transport, &forged, true, Dropped(DropReason::ForgedHeader)).await;
        to_server(transport, &forged[..12], true, Dropped(DropReason::ForgedHeader)).await;
        to_server(transport, &forged, false, Passes).await;
        to_server(transport, &forged[1..], true, Passes).await;
        to_server(transport, &prefixed, true, Passes).await;
        to_client(transport, &forged, Passes).await;
    }
    to_server("WebSocket", FLOW_REQUEST.as_bytes(), false, Passes).await;
    to_client("WebSocket", &prefixed, Passes).await;
    to_client("WebTransport", &prefixed, Dropped(DropReason::Reserved)).await;
    let draining = [CONTROL_PREFIX, br#"{"type":"draining","left_ms":1}"#].concat();
    to_client("WebSocket", &draining, Passes).await;
    to_client("WebSocket", &draining[CONTROL_PREFIX.len()..], Passes).await;
    to_client("WebTransport", &draining, Dropped(DropReason::Reserved)).await;
}
