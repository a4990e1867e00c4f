//! Connections that use up the memory neither delay other connections nor cause spurious wakes.

use std::net::SocketAddr;
use std::time::Duration;

use rakwire::endpoint::SendError;
use rakwire_native::endpoint::{Connection, Endpoint, Options};

use super::by_both_protocols;
use super::subject::{Subject, client, echo, join, message, receive, server, until};

by_both_protocols!(
    two_vanished_clients_do_not_block_sends_to_a_third,
    players_exchange_messages_while_others_vanish_or_are_not_read,
    messages_do_not_wake_blocked_senders_of_other_connections,
    each_blocked_sender_is_woken_when_its_connection_has_memory,
    a_blocked_send_fails_when_its_connection_closes,
);

/// The address of the clients that vanish. Later clients use another address, so that none of them gets the address
/// and port of a vanished client.
const GONE: &str = "127.0.0.2:0";

/// Connects `count` clients that stop responding, and returns the server's connections to them.
async fn vanished<P: Subject>(server: &Endpoint<P>, count: usize) -> Vec<Connection<P>> {
    let address = server.local_addr();
    let (ready, go) = (tokio::sync::oneshot::channel(), tokio::sync::oneshot::channel());
    let thread = std::thread::spawn(move || connect_and_vanish::<P>(address, count, ready.0, go.1));
    let mut accepted = Vec::new();
    while accepted.len() < count {
        accepted.push(server.accept().await.expect("a connection"));
    }
    ready.1.await.expect("timed out waiting for all clients");
    go.0.send(()).expect("a deadline");
    tokio::task::spawn_blocking(move || thread.join().expect("no panic")).await.expect("no panic");
    accepted
}

fn connect_and_vanish<P: Subject>(
    address: SocketAddr,
    count: usize,
    ready: tokio::sync::oneshot::Sender<()>,
    go: tokio::sync::oneshot::Receiver<()>,
) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let clients = runtime.block_on(async {
        let mut clients = Vec::new();
        for _ in 0..count {
            let mut options = Options::<P>::client().expect("entropy");
            P::be_patient(&mut options.config);
            let endpoint = Endpoint::bind(GONE, options).await.expect("a free port");
            let connection = endpoint.connect(address).await.expect("a connection");
            clients.push((endpoint, connection));
        }
        let _ = ready.send(());
        // The last handshake message from the client has not been sent yet.
        go.await.expect("the test says when");
        clients
    });
    // Dropping the runtime drops the tasks before the sockets, so no disconnect is sent.
    drop(runtime);
    drop(clients);
}

/// Binds a server with an idle timeout that exceeds the duration of the test.
async fn patient_server<P: Subject>() -> Endpoint<P> {
    server::<P>(|options| {
        P::set_timeout(&mut options.config, Duration::from_secs(300));
    })
    .await
}

fn fill<P: Subject>(connection: &Connection<P>) -> SendError {
    let mut error = SendError::NotConnected;
    for length in [50_000, 1_000, 10] {
        error = loop {
            if let Err(error) = connection.try_send(&message(length, 0), P::RELIABLE) {
                break error;
            }
        };
    }
    error
}

async fn two_vanished_clients_do_not_block_sends_to_a_third<P: Subject>() {
    let options = Options::<P>::server(1_000).expect("entropy");
    let server = super::subject::bind(options).await;
    let gone = vanished(&server, 2).await;
    let client = client::<P>(|_| {}).await;
    let (here, there) = join(&client, &server).await;
    for connection in &gone {
        fill(connection);
    }
    for number in 0..20 {
        there.try_send(&message(10_000, number), P::RELIABLE).expect("space for the guaranteed messages");
        assert_eq!(receive(&here).await.bytes, message(10_000, number));
        here.send(&message(1, 0), P::RELIABLE).await.expect("an open connection");
        receive(&there).await;
        // The acknowledgement may arrive after the reply.
        until("the message is acknowledged", || there.stats().is_some_and(|stats| !P::is_waiting(&stats)))
            .await;
    }
}

async fn players_exchange_messages_while_others_vanish_or_are_not_read<P: Subject>() {
    let server = server::<P>(|options| options.receive_queue = 10_000).await;
    let gone = vanished(&server, 10).await;
    let mut unread = Vec::new();
    for number in 0..10 {
        let client = client::<P>(|_| {}).await;
        let (here, there) = join(&client, &server).await;
        while here.try_send(&message(1_000, number), P::RELIABLE).is_ok() {}
        unread.push((client, here, there));
    }
    for connection in &gone {
        fill(connection);
    }
    let mut players = Vec::new();
    for number in 0..40 {
        let client = client::<P>(|_| {}).await;
        let (here, there) = join(&client, &server).await;
        tokio::spawn(echo(here));
        players.push(tokio::spawn(async move {
            for round in 0..20 {
                there.try_send(&message(100, number + round), P::RELIABLE).expect("enough space");
                assert_eq!(receive(&there).await.bytes, message(100, number + round));
            }
            client
        }));
    }
    for player in players {
        player.await.expect("no panic");
    }
}

async fn messages_do_not_wake_blocked_senders_of_other_connections<P: Subject>() {
    let server = patient_server::<P>().await;
    let blocked = vanished(&server, 50).await;
    let client = client::<P>(|_| {}).await;
    let (here, there) = join(&client, &server).await;
    tokio::spawn(echo(here));
    let mut senders = Vec::new();
    for connection in blocked {
        fill(&connection);
        senders.push(tokio::spawn(async move { connection.send(&message(400, 0), P::RELIABLE).await }));
    }
    let turn = async |number| {
        there.send(&message(100, number), P::RELIABLE).await.expect("an open connection");
        assert_eq!(receive(&there).await.bytes, message(100, number));
        // The acknowledgement may arrive after the reply. Before it arrives, the next message would have to wait for
        // memory.
        until("the message is acknowledged", || there.stats().is_some_and(|stats| !P::is_waiting(&stats)))
            .await;
    };
    turn(0).await;
    let before = server.stats().sender_wakes;
    for number in 0..200 {
        turn(number).await;
    }
    // A wake per message would exceed this limit. Some wakes are expected: memory is freed when the handshake of a
    // vanished client ends, and when path probes are lost, which happens more often in a slow test.
    let wakes = server.stats().sender_wakes - before;
    assert!(wakes < 100, "{wakes} of 200");
    senders.iter().for_each(tokio::task::JoinHandle::abort);
}

async fn each_blocked_sender_is_woken_when_its_connection_has_memory<P: Subject>() {
    const MESSAGES: usize = 2_000;
    let server = server::<P>(|_| {}).await;
    let client = client::<P>(|options| {
        options.capacity = rakwire::endpoint::Capacity { connections: 1, blocks: 64, block_size: 512 };
    })
    .await;
    let (here, there) = join(&client, &server).await;
    let here = std::sync::Arc::new(here);
    // Several tasks wait to send on one connection, and one of them stops waiting.
    let given_up = {
        let here = std::sync::Arc::clone(&here);
        tokio::spawn(async move { while here.send(&message(400, 0), P::UNRELIABLE).await.is_ok() {} })
    };
    tokio::time::sleep(Duration::from_millis(20)).await;
    given_up.abort();
    let senders: Vec<_> = (0..4)
        .map(|_| {
            let here = std::sync::Arc::clone(&here);
            tokio::spawn(async move {
                for number in 0..MESSAGES / 4 {
                    here.send(&message(401, number), P::RELIABLE).await.expect("an open connection");
                }
            })
        })
        .collect();
    let mut received = 0;
    while received < MESSAGES {
        received += usize::from(receive(&there).await.bytes.len() == 401);
    }
    for sender in senders {
        sender.await.expect("no panic");
    }
}

async fn a_blocked_send_fails_when_its_connection_closes<P: Subject>() {
    let server = patient_server::<P>().await;
    let connection = std::sync::Arc::new(vanished(&server, 1).await.remove(0));
    fill(&connection);
    let waiting = std::sync::Arc::clone(&connection);
    let sender = tokio::spawn(async move { waiting.send(&message(400, 0), P::RELIABLE).await });
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(!sender.is_finished());
    let ending = tokio::spawn(async move { connection.disconnect().await });
    let sent = tokio::time::timeout(crate::support::DEADLINE, sender).await.expect("before the timeout");
    assert_eq!(sent.expect("no panic"), Err(SendError::NotConnected));
    ending.abort();
}
