//! Clients that resume a flow from another address, and impostors.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use rakwire_relay::config::TargetSource;
use rakwire_relay::flow::FLOW_PROTOCOL;
use rakwire_relay::token::SigningKey;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::{MaybeTlsStream, client_async};

use crate::admission::{key_file, token};
use crate::resume::Game;
use crate::support::{Client, Flow, Running, Server, config, connect_from, game, within};

/// An address other than that of the first connection.
const ELSEWHERE: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

/// Opens a client at [`ELSEWHERE`] that accepts control messages.
async fn open(relay: SocketAddr, query: &str) -> Client {
    let mut request = format!("ws://{relay}/ws?target=game{query}").into_client_request().unwrap();
    request.headers_mut().insert("sec-websocket-protocol", FLOW_PROTOCOL.parse().unwrap());
    let stream = MaybeTlsStream::Plain(connect_from(ELSEWHERE, relay).await);
    Client(within(client_async(request, stream)).await.unwrap().0)
}

/// The client's network changes. The game server does not notice it, with or without PROXY headers.
#[tokio::test]
async fn a_client_resumes_from_another_address() {
    for source in [TargetSource::Shared, TargetSource::LoopbackPool] {
        let game = Game::start_with(|config| game(config).source = source).await;
        let mut client = open(game.relay.address, &format!("&resume={}", game.flow.resume)).await;
        assert_eq!(client.flow().await, Flow { resumed: true, ..game.flow.clone() });
        assert_eq!(game.client.closed().await.0, 4409);
        client.send(b"from elsewhere").await;
        assert_eq!(game.server.receive().await, (b"from elsewhere".to_vec(), game.from), "{source:?}");
        game.server.send(b"welcome", game.from).await;
        assert_eq!(client.datagram().await, b"welcome");
    }
}

/// An impostor does not get the flow, and its client keeps it.
#[tokio::test]
async fn another_address_without_the_secret_gets_its_own_flow() {
    let mut game = Game::start_with(|config| game(config).source = TargetSource::LoopbackPool).await;
    for secret in ["", "&resume=", "&resume=AAAAAAAAAAAAAAAAAAAAAA"] {
        let mut client = open(game.relay.address, secret).await;
        let flow = client.flow().await;
        assert!(!flow.resumed && flow.resume != game.flow.resume, "{secret}");
        client.send(b"somebody else").await;
        let (datagram, from) = game.server.receive().await;
        assert_eq!(datagram, b"somebody else");
        assert_ne!(from.ip(), game.from.ip(), "{secret}");
    }
    game.client.send(b"still here").await;
    assert_eq!(game.server.receive().await, (b"still here".to_vec(), game.from));
}

/// A token that contains the first address is invalid at the second address, where the secret of the flow is
/// sufficient.
#[tokio::test]
async fn the_secret_replaces_a_token_at_another_address() {
    let key = SigningKey::ed25519().unwrap();
    let mut config = config(Server::echo().await);
    config.tokens.keys = vec![key_file("elsewhere", &key)];
    let relay = Running::start(config).await;
    let token = token(&key, |claims| claims.addr = "127.0.0.1/32".parse().ok());
    let path = format!("/ws?target=game&token={token}");
    let (_client, flow) = Client::with_control(relay.address, &path).await;

    let wrong = "&resume=AAAAAAAAAAAAAAAAAAAAAA";
    for (query, text) in [
        (wrong.to_owned(), "a token is needed"),
        (format!("&token={token}"), "the token is for another address"),
        (format!("{wrong}&token={token}"), "the token is for another address"),
    ] {
        assert_eq!(open(relay.address, &query).await.closed().await, (4401, text.to_owned()), "{query}");
    }
    for query in [format!("&resume={}", flow.resume), format!("&resume={}&token={token}", flow.resume)] {
        let mut client = open(relay.address, &query).await;
        assert_eq!(client.flow().await, Flow { resumed: true, ..flow.clone() });
        client.send(b"hello").await;
        assert_eq!(client.datagram().await, b"hello");
    }
}
