//! Messages between machines: with loss, in parts, with little memory, and with several clients.

use std::net::SocketAddr;

use rakwire::endpoint::SendError;
use rakwire_embassy::{ConnectError, Connection, Event};

use crate::support::{
    LOCAL, Machine, Net, PORT, REMOTE, Tested, Wire, bytes, connect, echo, end, in_order, join, message,
    number, pair, round_trips, run, until,
};

pub(crate) fn messages_survive_datagram_loss<P: Tested>() {
    run(async {
        let wire = Wire::losing(20);
        let (client, server) = pair::<P>(wire.clone());
        let accepted = async { echo(server.handle.accept().await).await };
        let asked = async {
            let here = join(&client, server.address).await;
            assert_eq!((here.remote(), here.closed_reason()), (server.address, None));
            round_trips(&here, 100, 40).await;
            assert!(here.stats().is_some_and(|stats| P::lost(&stats) > 0));
            wire.lose_nothing();
            here.disconnect().await;
            assert_eq!(end(&here), LOCAL);
        };
        let ((), end) = tokio::join!(asked, accepted);
        assert_eq!(end, REMOTE);
        assert!(client.handle.stats().datagrams_sent > 100);
    });
}

/// Exchanges messages of `length` bytes with these memory sizes. A message of `too_long` bytes never fits.
pub(crate) fn long_messages_arrive_in_both_directions<
    P: Tested,
    const B: usize,
    const S: usize,
    const D: usize,
>(
    length: usize,
    too_long: usize,
) {
    run(async {
        let mut net = Net::new(Wire::losing(5));
        let (client, server) = (net.client::<P, 1, B, S, D>(), net.server::<P, 1, B, S, D>());
        tokio::task::spawn_local(async move { echo(server.handle.accept().await).await });
        let here = client.handle.connect(server.address).await.expect("a connection");
        for number in 0..5 {
            here.send(&message(number, length), P::RELIABLE).await.expect("an open connection");
            let Some(Event::Message(answer)) = here.next().await else { panic!("no answer") };
            assert!(answer.read(|bytes| bytes.chunks().count()) > 20);
            assert_eq!(bytes(&answer), message(number, length));
        }
        let sent = here.send(&message(0, too_long), P::RELIABLE).await;
        assert_eq!(sent, Err(SendError::NeverFits));
    });
}

pub(crate) fn a_full_pool_blocks_senders_without_loss<P: Tested>() {
    run(async {
        let wire = Wire::losing(2);
        let mut net = Net::new(wire.clone());
        let (client, server) = (net.client::<P, 1, 12, 64, 2>(), net.server::<P, 1, 12, 64, 2>());
        let sender = async {
            let here = client.handle.connect(server.address).await.expect("a connection");
            let mut full = 0;
            while here.try_send(&message(full, 60), P::RELIABLE).is_ok() {
                full += 1;
            }
            assert!((1..12).contains(&full), "{full} messages were queued");
            let error = here.try_send(&message(full, 60), P::RELIABLE).expect_err("a full pool");
            assert!(matches!(error, SendError::QuotaExceeded | SendError::PoolExhausted), "{error}");
            for number in full..300 {
                here.send(&message(number, 60), P::RELIABLE).await.expect("space after acknowledgements");
            }
            wire.lose_nothing();
            here.disconnect().await;
            assert_eq!(end(&here), LOCAL);
        };
        let reader = async {
            let there = server.handle.accept().await;
            let mut numbers = Vec::new();
            while let Some(message) = there.recv().await {
                numbers.push(number(&message));
            }
            numbers
        };
        let ((), numbers) = tokio::join!(sender, reader);
        assert_eq!(in_order::<P>(numbers), (0..300).collect::<Vec<_>>());
        until(|| client.handle.blocks_available() == 12 && server.handle.blocks_available() == 12).await;
    });
}

pub(crate) fn four_clients_exchange_messages_with_one_server<P: Tested>() {
    run(async {
        let wire = Wire::losing(3);
        let mut net = Net::new(wire.clone());
        let host = net.server::<P, 4, 96, 128, 8>();
        let clients: Vec<_> = (0..4).map(|_| net.client::<P, 1, 24, 128, 4>()).collect();
        let (handle, address) = (host.handle, host.address);
        tokio::task::spawn_local(async move {
            loop {
                tokio::task::spawn_local(echo(handle.accept().await));
            }
        });
        let players: Vec<_> = clients
            .into_iter()
            .map(|client| {
                tokio::task::spawn_local(async move {
                    let connection = join(&client, address).await;
                    round_trips(&connection, 50, 100).await;
                    connection
                })
            })
            .collect();
        let mut connections = Vec::new();
        for player in players {
            connections.push(player.await.expect("no panic"));
        }
        let late = net.machine::<P, 1, 24, 128, 4>(0, P::hurry);
        assert!(served(&late, address).await.is_none());

        // A client that disconnects frees its slot.
        wire.lose_nothing();
        connections.pop().expect("one connection").disconnect().await;
        let connection = loop {
            if let Some(connection) = served(&late, address).await {
                break connection;
            }
            // The server is still closing the previous attempt.
            tokio::task::yield_now().await;
        };
        round_trips(&connection, 5, 100).await;
    });
}

/// Opens a connection on which the server echoes, or returns `None` if the server is full. A full Game Protocol server
/// may close a connection that the client considers open.
async fn served<P: Tested>(client: &Machine<P>, server: SocketAddr) -> Option<Connection<'static, P>> {
    let connection = client.handle.connect(server).await.ok()?;
    connection.send(&message(0, 100), P::RELIABLE).await.ok()?;
    drop(connection.recv().await?);
    Some(connection)
}

pub(crate) fn an_unread_connection_does_not_block_other_connections<P: Tested>() {
    run(async {
        let mut net = Net::new(Wire::losing(0));
        let host = net.server::<P, 2, 96, 128, 8>();
        let (lazy, eager) = (net.client::<P, 1, 24, 128, 4>(), net.client::<P, 1, 24, 128, 4>());
        let (unread, not_reading) = connect(&lazy, &host).await;
        unread.send(&message(7, 20), P::RELIABLE).await.expect("an open connection");
        tokio::task::spawn_local(async move { echo(host.handle.accept().await).await });
        let here = eager.handle.connect(host.address).await.expect("a connection");
        round_trips(&here, 50, 30).await;
        for number in 0..50 {
            here.send(&message(number, 30), P::UNRELIABLE).await.expect("an open connection");
            assert_eq!(bytes(&here.recv().await.expect("an answer")), message(number, 30));
        }
        let at_last = not_reading.recv().await.expect("a message sent earlier");
        assert_eq!(bytes(&at_last), message(7, 20));
    });
}

pub(crate) fn connecting_to_an_absent_server_fails_and_frees_the_slot<P: Tested>() {
    run(async {
        let mut net = Net::new(Wire::losing(0));
        let client = net.machine::<P, 1, 24, 128, 4>(0, P::hurry);
        let absent = ([10, 0, 0, 9], PORT).into();
        let error = client.handle.connect(absent).await.expect_err("an unused address");
        assert_eq!(error.to_string(), "the server does not answer");
        // The failed attempt has freed the only slot, so one of the next two can use it.
        let (first, second) = tokio::join!(client.handle.connect(absent), client.handle.connect(absent));
        assert!(matches!(first, Err(ConnectError::Failed(_))), "{first:?}");
        assert!(matches!(second, Err(ConnectError::NotStarted(_))), "{second:?}");
    });
}

/// Counts the distinct ports that three successive connections use.
pub(crate) fn ports_of_three_connections<P: Tested>() -> usize {
    let mut ports = Vec::new();
    run(async {
        let (client, server) = pair::<P>(Wire::losing(0));
        for _ in 0..3 {
            let (opened, accepted) = tokio::join!(join(&client, server.address), server.handle.accept());
            ports.push(accepted.remote().port());
            opened.send(&message(1, 9), P::RELIABLE).await.expect("an open connection");
            assert_eq!(bytes(&accepted.recv().await.expect("a message")), message(1, 9));
            opened.disconnect().await;
            assert!(accepted.recv().await.is_none());
            assert_eq!(end(&accepted), REMOTE);
        }
    });
    ports.sort_unstable();
    ports.dedup();
    ports.len()
}

pub(crate) fn a_new_connection_uses_the_fixed_port_or_the_port_in_use<P: Tested>() {
    run(async {
        let mut net = Net::new(Wire::losing(0));
        let fixed = net.machine::<P, 1, 24, 128, 4>(4_000, |_| {});
        let busy = net.client::<P, 2, 24, 128, 4>();
        let servers = [net.server::<P, 2, 48, 128, 4>(), net.server::<P, 2, 48, 128, 4>()];
        let (_first, one) = connect(&busy, &servers[0]).await;
        let (_second, other) = connect(&busy, &servers[1]).await;
        assert_eq!(one.remote().port(), other.remote().port());
        let (_connection, accepted) = connect(&fixed, &servers[0]).await;
        assert_eq!(accepted.remote().port(), 4_000);
    });
}

/// The last reference is dropped after a send. The message must still be sent from the port that the remote peer
/// knows.
pub(crate) fn a_closing_connection_keeps_its_port<P: Tested>() {
    run(async {
        let mut net = Net::new(Wire::losing(0));
        let client = net.client::<P, 2, 24, 128, 4>();
        let servers = [net.server::<P, 2, 48, 128, 4>(), net.server::<P, 2, 48, 128, 4>()];
        let (first, accepted) = connect(&client, &servers[0]).await;
        first.send(&message(1, 300), P::RELIABLE).await.expect("an open connection");
        drop(first);
        let _second = client.handle.connect(servers[1].address).await.expect("a connection");
        assert_eq!(bytes(&accepted.recv().await.expect("a message")), message(1, 300));
        assert!(accepted.recv().await.is_none());
        assert_eq!(end(&accepted), REMOTE);
    });
}
