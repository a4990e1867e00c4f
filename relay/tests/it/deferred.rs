//! Clients that open several connections and continue with one of them.

use std::time::Duration;

use rakwire_relay::flow::FLOW_REQUEST;
use rakwire_relay::{CloseKind, TransportKind};
use tokio_tungstenite::tungstenite::Message;

use crate::support::{Client, Running, Server, config, eventually};

const PATH: &str = "/ws?target=game&defer=1";

#[tokio::test]
async fn only_the_continuing_connection_counts_as_a_new_client() {
    let server = Server::bind().await;
    let mut config = config(server.address());
    config.admission.exempt.clear();
    config.clients.rate_per_address = 1;
    config.clients.burst_per_address = 2;
    let relay = Running::start(config).await;
    // Each client opens two connections, and uses one.
    for winner in 0..3 {
        let mut racing = Vec::new();
        for _ in 0..2 {
            racing.push(Client::connect_with_control(relay.address, PATH).await);
        }
        racing[1].send(b"hello").await;
        if winner < 2 {
            assert_eq!(server.receive().await.0, b"hello");
        } else {
            assert_eq!(racing.remove(1).closed().await.0, 4429);
        }
    }
}

#[tokio::test]
async fn a_deferred_flow_opens_with_the_first_datagram() {
    let server = Server::bind().await;
    let relay = Running::start(config(server.address())).await;
    let mut winner = Client::connect_with_control(relay.address, PATH).await;
    let loser = Client::connect_with_control(relay.address, PATH).await;
    let open = || relay.snapshot().transport(TransportKind::WebSocket);
    eventually("both connections are open", || open().open == 2).await;
    assert_eq!(relay.snapshot().flows, 0);

    winner.send(b"hello").await;
    assert_eq!(server.receive().await.0, b"hello");
    assert!(winner.text().await.contains(r#""resumed":false"#));
    drop(loser);
    eventually("one connection is open", || open().open == 1).await;
    let snapshot = relay.snapshot();
    assert_eq!((snapshot.flows, snapshot.clients, open().opened), (1, 1, 2));
    assert_eq!(snapshot.closes(CloseKind::ClientVanished), 1);
}

#[tokio::test]
async fn a_deferred_connection_takes_no_slot_and_can_resume() {
    let server = Server::bind().await;
    let mut config = config(server.address());
    config.limits.max_clients = 1;
    let relay = Running::start(config).await;
    let (mut first, flow) = Client::with_control(relay.address, "/ws?target=game").await;
    first.send(b"first").await;
    let (_, from) = server.receive().await;

    let path = format!("{PATH}&resume={}", flow.resume);
    let mut second = Client::connect_with_control(relay.address, &path).await;
    first.send(b"still first").await;
    assert_eq!(server.receive().await, (b"still first".to_vec(), from));
    second.message(Message::text(FLOW_REQUEST)).await;
    assert!(second.text().await.contains(r#""resumed":true"#));
    assert_eq!(first.closed().await.0, 4409);
    second.send(b"second").await;
    assert_eq!(server.receive().await, (b"second".to_vec(), from));
    // The relay answers a repeated request with the same message.
    second.message(Message::text(FLOW_REQUEST)).await;
    assert!(second.text().await.contains(&flow.resume));
}

#[tokio::test]
async fn a_silent_deferred_connection_is_closed() {
    let mut config = config(Server::echo().await);
    config.limits.header_timeout = Duration::from_secs(10);
    let relay = Running::start(config).await;
    assert_eq!(Client::connect(relay.address, PATH).await.closed().await.0, 4408);
}

#[tokio::test]
async fn a_refused_deferred_connection_is_closed() {
    let relay = Running::start(config(Server::echo().await)).await;
    assert_eq!(Client::connect(relay.address, "/ws?target=none&defer=1").await.closed().await.0, 4404);
    let mut text = Client::connect(relay.address, PATH).await;
    text.message(Message::text("hello")).await;
    assert_eq!(text.closed().await.0, 1003);
    let waiting = Client::connect(relay.address, PATH).await;
    let (stopped, (code, _)) = tokio::join!(relay.stop(), waiting.closed());
    assert_eq!((stopped, code), ((), 1001));
}
