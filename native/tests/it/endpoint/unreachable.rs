//! Addresses at which no socket listens. The kernel sends ICMP messages over loopback too.

use std::net::{SocketAddr, UdpSocket};

use rakwire_native::PingError;
use rakwire_native::endpoint::ConnectError;

use super::by_both_protocols;
use super::subject::{
    Subject, client, echo_all, join, numbered, receive, receive_all, server, silent_socket, until,
};
use crate::support::{DEADLINE, closed_port};

by_both_protocols!(
    an_attempt_at_a_closed_port_fails_immediately,
    the_next_address_is_tried_immediately,
    a_refusal_counts_as_an_answer,
    no_attempt_is_made_without_addresses,
    errors_about_one_peer_do_not_affect_others,
    an_endpoint_without_error_reports_waits_for_its_timeout,
);

async fn an_attempt_at_a_closed_port_fails_immediately<P: Subject>() {
    // Without the report, the attempt would exceed the time limit of a test.
    let client = client::<P>(|_| {}).await;
    let (_reserved, closed) = closed_port();
    let attempts = async {
        for _ in 0..2 {
            let failed = client.connect(closed).await.err();
            assert_eq!(failed, Some(ConnectError::Failed(P::UNREACHABLE)));
        }
    };
    tokio::time::timeout(DEADLINE, attempts).await.expect("a result before the timeout");
}

async fn the_next_address_is_tried_immediately<P: Subject>() {
    let server = echo_all(server::<P>(|_| {}).await);
    let client = client::<P>(|_| {}).await;
    // The client's socket cannot reach the first address.
    let (_reserved, closed) = closed_port();
    let addresses = [SocketAddr::from(([0, 0, 0, 0, 0, 0, 0, 1], 9)), closed, server.local_addr()];
    let options = P::ConnectOptions::default();
    let connect = client.connect_any(&addresses, &options);
    let connection =
        tokio::time::timeout(DEADLINE, connect).await.expect("before the timeout").expect("a connection");
    assert_eq!(connection.remote(), server.local_addr());
    connection.send(&numbered(10, 0), P::RELIABLE).await.expect("an open connection");
    assert_eq!(receive(&connection).await.bytes, numbered(10, 0));
}

async fn a_refusal_counts_as_an_answer<P: Subject>() {
    let (first, second) = (server::<P>(|_| {}).await, server::<P>(|_| {}).await);
    let client = client::<P>(|_| {}).await;
    let (_here, _there) = join(&client, &first).await;
    let addresses = [first.local_addr(), second.local_addr()];
    let again = client.connect_any(&addresses, &P::ConnectOptions::default()).await;
    assert_eq!(again.err(), Some(ConnectError::AlreadyConnected));
    assert_eq!(second.stats().connections, 0);
}

async fn no_attempt_is_made_without_addresses<P: Subject>() {
    let client = client::<P>(|_| {}).await;
    let failed = client.connect_any(&[], &P::ConnectOptions::default()).await.err();
    assert_eq!(failed, Some(ConnectError::UnassignedAddress));
}

/// A server vanishes while error reports are enabled for an attempt at another address.
async fn errors_about_one_peer_do_not_affect_others<P: Subject>() {
    let (vanishing, other) = (server::<P>(|_| {}).await, server::<P>(|_| {}).await);
    let client = client::<P>(|_| {}).await;
    let (gone, _there) = join(&client, &vanishing).await;
    let (here, there) = join(&client, &other).await;
    let (_silent, address) = silent_socket();
    let attempt = client.connect(address);
    let exchange = async {
        vanishing.rebind(UdpSocket::bind("127.0.0.1:0").expect("a free port")).expect("an open endpoint");
        vanishing.flush().await;
        for number in 0..200 {
            gone.try_send(&numbered(100, number), P::RELIABLE).expect("enough space");
            here.send(&numbered(1_000, number), P::RELIABLE).await.expect("an open connection");
            tokio::task::yield_now().await;
        }
        receive_all(&there, 1_000, 200).await;
        // Unreliable messages to the vanished server cause error reports.
        until("a datagram is sent to the vanished server", || {
            gone.stats().is_some_and(|stats| P::is_waiting(&stats))
        })
        .await;
    };
    tokio::select! {
        failed = attempt => panic!("{:?}", failed.err()),
        exchanged = tokio::time::timeout(DEADLINE, exchange) => exchanged.expect("messages in time"),
    }
    assert_eq!(gone.closed_reason(), None);
    let stats = client.stats();
    assert_eq!((stats.send_failures, stats.receive_failures), (0, 0));
}

async fn an_endpoint_without_error_reports_waits_for_its_timeout<P: Subject>() {
    let client = client::<P>(|options| {
        options.fail_on_unreachable = false;
        P::set_timeout(&mut options.config, std::time::Duration::from_millis(50));
    })
    .await;
    let (_reserved, closed) = closed_port();
    let failed = client.connect(closed).await.err();
    assert_eq!(failed, Some(ConnectError::Failed(P::NO_ANSWER)));
}

#[tokio::test]
async fn a_ping_to_a_closed_port_fails_immediately() {
    let client = client::<rakwire::raknet::RakNet>(|_| {}).await;
    let (_reserved, closed) = closed_port();
    let pong = tokio::time::timeout(DEADLINE, client.ping(closed, 2 * DEADLINE)).await;
    assert_eq!(pong.expect("a result before the timeout"), Err(PingError::Unreachable));
}
