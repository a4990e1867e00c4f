//! Opening and closing of connections and endpoints.

use std::net::UdpSocket;
use std::sync::Arc;
use std::time::Duration;

use rakwire::endpoint::SendError;
use rakwire::game_protocol::GameProtocol;
use rakwire::raknet::RakNet;
use rakwire_native::BindError;
use rakwire_native::endpoint::{ConnectError, Endpoint, Options, TryAcceptError, TryRecvError};

use super::by_both_protocols;
use super::subject::{
    Subject, client, echo, has_no_messages, join, message, numbered, receive, receive_all, server,
    silent_socket, until,
};
use crate::support::DEADLINE;

by_both_protocols!(
    a_connection_ends_after_its_messages_are_delivered,
    a_final_message_arrives_before_the_disconnect,
    the_round_trip_time_is_available_until_the_disconnect,
    dropping_a_connection_disconnects_the_peer,
    a_connection_outlives_its_endpoint,
    connect_errors_name_the_cause,
    bind_errors_contain_the_address,
    dropping_connect_cancels_the_attempt,
    closing_an_endpoint_delivers_messages_and_frees_the_address,
    closing_an_endpoint_ends_all_its_connections,
    clients_beyond_the_accept_queue_are_refused,
    dropping_the_last_handle_of_a_connection_closes_it,
    dropping_the_last_handle_of_an_endpoint_stops_accepting,
    all_tasks_waiting_for_the_disconnect_get_the_reason,
    non_blocking_calls_return_what_has_arrived,
);

/// Sets a close timeout that exceeds the time in which any peer acknowledges everything.
fn until_all_is_acknowledged<P: Subject>(options: &mut Options<P>) {
    P::set_close_timeout(&mut options.config, DEADLINE);
}

async fn a_connection_ends_after_its_messages_are_delivered<P: Subject>() {
    let (server, client) = (server::<P>(|_| {}).await, client(until_all_is_acknowledged::<P>).await);
    let (here, there) = join(&client, &server).await;
    for number in 0..200 {
        here.send(&numbered(1_000, number), P::RELIABLE).await.expect("an open connection");
    }
    assert_eq!(here.closed_reason(), None);
    here.disconnect().await;
    assert_eq!(here.closed_reason(), Some(P::LOCAL));
    assert_eq!(here.send(&[0x90], P::RELIABLE).await, Err(SendError::NotConnected));
    assert!(here.recv().await.is_none());

    receive_all(&there, 1_000, 200).await;
    assert!(there.recv().await.is_none());
    assert_eq!(there.closed_reason(), Some(P::REMOTE));
    assert_eq!(there.send(&[0x90], P::RELIABLE).await, Err(SendError::NotConnected));
}

async fn a_final_message_arrives_before_the_disconnect<P: Subject>() {
    let (server, client) = (server(until_all_is_acknowledged::<P>).await, client::<P>(|_| {}).await);
    let (here, there) = join(&client, &server).await;
    for number in 0..20 {
        there.send(&numbered(1_000, number), P::RELIABLE).await.expect("an open connection");
    }
    there.disconnect_with(&numbered(1_000, 20), P::RELIABLE).await.expect("an open connection");
    assert_eq!(there.closed_reason(), Some(P::LOCAL));
    receive_all(&here, 1_000, 21).await;
    assert!(here.recv().await.is_none());
    assert_eq!(here.closed_reason(), Some(P::REMOTE));

    // If the message cannot be sent, the connection is closed nevertheless.
    let (here, there) = join(&client, &server).await;
    let empty = there.disconnect_with(&[], P::RELIABLE).await;
    assert_eq!(empty, Err(SendError::Empty));
    assert!(here.recv().await.is_none());
    assert_eq!((there.closed_reason(), here.closed_reason()), (Some(P::LOCAL), Some(P::REMOTE)));
    assert_eq!(there.disconnect_with(b"\x90", P::RELIABLE).await, Err(SendError::NotConnected));
}

/// The round-trip time is at least the simulated latency.
async fn the_round_trip_time_is_available_until_the_disconnect<P: Subject>() {
    let latency = Duration::from_millis(20);
    let slow =
        |options: &mut Options<P>| options.simulate = Some("latency=20ms".parse().expect("a simulation"));
    let (server, client) = (server(slow).await, client(slow).await);
    let (here, there) = join(&client, &server).await;
    tokio::spawn(echo(there));
    let message = numbered(100, 0);
    while P::rtt(&here).is_none() {
        here.send(&message, P::RELIABLE).await.expect("an open connection");
        assert_eq!(receive(&here).await.bytes, message);
    }
    assert!(P::rtt(&here) >= Some(2 * latency), "{:?}", P::rtt(&here));
    here.disconnect().await;
    assert_eq!(P::rtt(&here), None);
}

async fn dropping_a_connection_disconnects_the_peer<P: Subject>() {
    let (server, client) = (server::<P>(|_| {}).await, client::<P>(|_| {}).await);
    let (here, there) = join(&client, &server).await;
    drop(here);
    assert!(
        tokio::time::timeout(DEADLINE, there.recv()).await.expect("a result before the timeout").is_none()
    );
    assert_eq!(there.closed_reason(), Some(P::REMOTE));
}

async fn a_connection_outlives_its_endpoint<P: Subject>() {
    let (server, client) = (server::<P>(|_| {}).await, client::<P>(|_| {}).await);
    let (here, there) = join(&client, &server).await;
    drop((client, server));
    here.send(&message(10, 0), P::RELIABLE).await.expect("an open connection");
    assert_eq!(receive(&there).await.bytes, message(10, 0));
    there.disconnect().await;
    assert!(here.recv().await.is_none());
}

/// The peer vanishes without a disconnect when its runtime stops.
fn a_vanished_peer_is_lost<P: Subject>() {
    let runtime = || {
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime")
    };
    let (mine, theirs) = (runtime(), runtime());
    // The timeout is long enough for a handshake on a slow machine.
    let timeout = Duration::from_secs(5);
    let server =
        mine.block_on(server(|options: &mut Options<P>| P::set_timeout(&mut options.config, timeout)));
    let address = server.local_addr();
    let (vanishing, connection) = theirs.block_on(async {
        let client = client::<P>(|_| {}).await;
        let connection = client.connect(address).await.expect("a connection");
        (client, connection)
    });
    mine.block_on(async {
        // The client considers itself connected before it sends its last handshake message.
        let there = tokio::time::timeout(DEADLINE, server.accept()).await.expect("a connection in time");
        let there = there.expect("an open endpoint");
        theirs.shutdown_background();
        let end = tokio::time::timeout(DEADLINE, there.recv()).await;
        assert!(end.expect("a result before the timeout").is_none());
        assert_eq!(there.closed_reason(), Some(P::LOST));
    });
    drop((connection, vanishing));
}

#[test]
fn a_silent_raknet_peer_is_lost() {
    a_vanished_peer_is_lost::<RakNet>();
}

#[test]
fn a_silent_game_protocol_peer_is_lost() {
    a_vanished_peer_is_lost::<GameProtocol>();
}

/// Binds a client with a short connection timeout.
async fn impatient<P: Subject>() -> Endpoint<P> {
    client(|options| P::set_timeout(&mut options.config, Duration::from_millis(300))).await
}

async fn connect_errors_name_the_cause<P: Subject>() {
    let (_socket, silent) = silent_socket();
    let failed = impatient::<P>().await.connect(silent).await;
    assert_eq!(failed.err(), Some(ConnectError::Failed(P::NO_ANSWER)));

    let (server, client) = (server::<P>(|_| {}).await, client::<P>(|_| {}).await);
    let _first = client.connect(server.local_addr()).await.expect("a connection");
    let again = client.connect(server.local_addr()).await;
    assert_eq!(again.err(), Some(ConnectError::AlreadyConnected));

    let v6 = "[::1]:19132".parse().expect("a literal address");
    assert_eq!(client.connect(v6).await.err(), Some(ConnectError::AddressFamily));

    let full = super::subject::client::<P>(|options| options.capacity.connections = 1).await;
    let _first = full.connect(server.local_addr()).await.expect("a connection");
    assert_eq!(full.connect(silent).await.err(), Some(ConnectError::Full));
}

async fn bind_errors_contain_the_address<P: Subject>() {
    let first = server::<P>(|_| {}).await;
    let taken = Endpoint::<P>::bind(first.local_addr(), Options::client().expect("entropy")).await;
    assert!(matches!(taken, Err(BindError::Socket { .. })));
    let nowhere = Endpoint::<P>::bind("no port", Options::client().expect("entropy")).await;
    assert!(matches!(nowhere, Err(BindError::Resolve(_))));
}

async fn dropping_connect_cancels_the_attempt<P: Subject>() {
    let (_socket, silent) = silent_socket();
    let client = client::<P>(|_| {}).await;
    let given_up = tokio::time::timeout(Duration::from_millis(20), client.connect(silent)).await;
    assert!(given_up.is_err());
    until("the attempt has ended", || client.stats().connections == 0).await;
}

async fn closing_an_endpoint_delivers_messages_and_frees_the_address<P: Subject>() {
    let server = Arc::new(server(until_all_is_acknowledged::<P>).await);
    let client = client::<P>(|_| {}).await;
    let address = server.local_addr();
    let (here, there) = join(&client, &server).await;
    // A connection that the application never accepts is closed too.
    let unaccepted = super::subject::client::<P>(|_| {}).await;
    let waiting = unaccepted.connect(address).await.expect("a connection");
    // Once everything that the client sent is acknowledged, the server considers the connection open.
    waiting.send(&message(16, 0), P::RELIABLE).await.expect("an open connection");
    until("everything is acknowledged", || has_no_messages(&unaccepted)).await;
    there.send(&message(P::LARGE, 0), P::RELIABLE).await.expect("an open connection");

    let accepting = Arc::clone(&server);
    let accepting = tokio::spawn(async move {
        let mut accepted = 0;
        while let Some(connection) = accepting.accept().await {
            accepted += 1;
            drop(connection);
        }
        accepted
    });
    server.close().await;
    assert!(accepting.await.expect("no panic") <= 1);
    assert_eq!(there.closed_reason(), Some(P::LOCAL));
    assert_eq!(server.connect(client.local_addr()).await.err(), Some(ConnectError::EndpointClosed));
    server.close().await;
    // The address is free again.
    Endpoint::<P>::bind(address, Options::client().expect("entropy")).await.expect("the address is free");

    assert!(receive(&here).await.bytes == message(P::LARGE, 0));
    assert!(here.recv().await.is_none());
    assert!(waiting.recv().await.is_none());
    assert_eq!(waiting.closed_reason(), Some(P::REMOTE));
}

async fn closing_an_endpoint_ends_all_its_connections<P: Subject>() {
    let server = server::<P>(|_| {}).await;
    let mut clients = Vec::new();
    for _ in 0..20 {
        let client = client::<P>(|_| {}).await;
        clients.push(join(&client, &server).await);
    }
    for (number, (here, there)) in clients.iter().enumerate() {
        here.send(&message(10, number), P::RELIABLE).await.expect("an open connection");
        assert_eq!(receive(there).await.bytes, message(10, number));
    }
    server.close().await;
    for (here, _) in &clients {
        assert!(here.recv().await.is_none());
    }
    assert!(server.accept().await.is_none());
}

async fn dropping_the_last_handle_of_a_connection_closes_it<P: Subject>() {
    let (server, client) = (server::<P>(|_| {}).await, client::<P>(|_| {}).await);
    let (here, there) = join(&client, &server).await;
    let other = here.clone();
    drop(here);
    other.send(&message(10, 0), P::RELIABLE).await.expect("an open connection");
    assert_eq!(receive(&there).await.bytes, message(10, 0));
    assert_eq!(other.closed_reason(), None);
    drop(other);
    let end = tokio::time::timeout(DEADLINE, there.closed()).await;
    assert_eq!(end.expect("a result before the timeout"), P::REMOTE);
}

async fn dropping_the_last_handle_of_an_endpoint_stops_accepting<P: Subject>() {
    let server = server::<P>(|_| {}).await;
    let address = server.local_addr();
    let other = server.clone();
    drop(server);
    let client = client::<P>(|_| {}).await;
    let (here, there) = join(&client, &other).await;
    drop(other);
    here.disconnect().await;
    there.closed().await;
    // The socket is closed by now, or soon. Reserving its port keeps other sockets away from the client's address.
    let mut reserved = None;
    until("the port is free", || {
        reserved = UdpSocket::bind(address).ok();
        reserved.is_some()
    })
    .await;
    let reserved = reserved.expect("a socket");
    reserved.connect(address).expect("an address of this machine");
    let attempt = impatient::<P>().await.connect(address).await;
    let Err(ConnectError::Failed(failure)) = attempt else { panic!("{attempt:?}") };
    assert!(P::was_unanswered(&failure), "{failure}");
}

async fn all_tasks_waiting_for_the_disconnect_get_the_reason<P: Subject>() {
    let (server, client) = (server::<P>(|_| {}).await, client(until_all_is_acknowledged::<P>).await);
    let (here, there) = join(&client, &server).await;
    let (one, two) = (there.clone(), there.clone());
    let watch = async { tokio::join!(one.closed(), two.closed()) };
    let given_up = tokio::time::timeout(Duration::ZERO, there.closed()).await;
    assert!(given_up.is_err(), "the connection is open");
    here.send(&message(10, 0), P::RELIABLE).await.expect("an open connection");
    let (ends, ()) = tokio::join!(watch, here.disconnect());
    assert_eq!(ends, (P::REMOTE, P::REMOTE));
    assert_eq!(here.closed().await, P::LOCAL);
    assert_eq!(there.try_recv().expect("a message before the close").bytes, message(10, 0));
    assert_eq!(there.try_recv(), Err(TryRecvError::Closed));
}

async fn non_blocking_calls_return_what_has_arrived<P: Subject>() {
    let (server, client) = (server::<P>(|_| {}).await, client::<P>(|_| {}).await);
    assert_eq!(server.try_accept().err(), Some(TryAcceptError::Empty));
    let here = client.connect(server.local_addr()).await.expect("a connection");
    assert_eq!(here.try_recv(), Err(TryRecvError::Empty));
    here.send(&message(10, 0), P::RELIABLE).await.expect("an open connection");
    let mut accepted = None;
    until("the connection is there", || {
        accepted = server.try_accept().ok();
        accepted.is_some()
    })
    .await;
    let there = accepted.expect("a connection");
    let mut received = None;
    until("the message is there", || {
        received = there.try_recv().ok();
        received.is_some()
    })
    .await;
    assert_eq!(received.expect("a message").bytes, message(10, 0));
    assert_eq!(there.try_recv(), Err(TryRecvError::Empty));
    server.close().await;
    assert_eq!(server.try_accept().err(), Some(TryAcceptError::Closed));
}

async fn clients_beyond_the_accept_queue_are_refused<P: Subject>() {
    let server = server::<P>(|options| options.backlog = 1).await;
    let (one, two) = (client::<P>(|_| {}).await, client::<P>(|_| {}).await);
    let first = one.connect(server.local_addr()).await.expect("a connection");
    // Once everything that the first client sent is acknowledged, its connection is in the accept queue.
    first.send(&message(10, 0), P::RELIABLE).await.expect("an open connection");
    until("everything is acknowledged", || has_no_messages(&one)).await;
    match two.connect(server.local_addr()).await {
        Ok(second) => {
            let end = tokio::time::timeout(DEADLINE, second.recv()).await;
            assert!(end.expect("a result before the timeout").is_none());
        }
        Err(error) => assert_ne!(error, ConnectError::Failed(P::NO_ANSWER)),
    }
    // A Game Protocol client repeats its reply until the server answers.
    assert!(server.stats().backlog_full >= 1);
    let there = server.accept().await.expect("the first");
    receive(&there).await;
}
