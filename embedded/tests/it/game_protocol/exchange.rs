//! The Game Protocol between machines: with loss, in chunks, with little memory; and futures that are dropped.

use rakwire::game_protocol::{DisconnectReason, Reliability, SendError};
use rakwire_embassy::game::{ConnectError, Connection, Event};

use crate::support::{Net, PORT, Player, Wire, give_up, message, players, read, run, until};

/// Sends everything back until the end.
async fn echo(connection: Connection<'static>) -> DisconnectReason {
    while let Some(message) = connection.recv().await {
        let (reliability, copy) = (message.reliability(), read(&message));
        drop(message);
        // The other side may have gone with what it wanted.
        let _ = connection.send(&copy, reliability).await;
    }
    connection.closed_reason().expect("an end")
}

async fn connected(wire: Wire) -> (Player, Player, Connection<'static>, Connection<'static>) {
    let (client, server) = players(wire);
    let (opened, accepted) = tokio::join!(client.handle.connect(server.address), server.handle.accept());
    (client, server, opened.expect("a connection"), accepted)
}

#[test]
fn round_trips_survive_loss() {
    run(async {
        let (_client, _server, here, there) = connected(Wire::losing(20)).await;
        tokio::task::spawn_local(echo(there));
        for number in 0..100 {
            here.send(&message(number, 40), Reliability::Reliable).await.expect("an open end");
            let answer = here.recv().await.expect("an answer");
            assert_eq!(read(&answer), message(number, 40));
            assert_eq!((answer.reliability(), answer.len()), (Reliability::Reliable, 40));
        }
        assert!(here.stats().is_some_and(|stats| stats.chunks_resent > 0));
    });
}

#[test]
fn twelve_kilobytes_travel_in_chunks_both_ways() {
    run(async {
        let mut net = Net::new(Wire::losing(5));
        let client = net.player::<1, 64, 504, 16>(0, |_| {});
        let server = net.player::<1, 64, 504, 16>(PORT, |config| config.max_incoming = 1);
        tokio::task::spawn_local(async move { echo(server.handle.accept().await).await });
        let here = client.handle.connect(server.address).await.expect("a connection");
        for number in 0..5 {
            here.send(&message(number, 12_000), Reliability::Reliable).await.expect("an open end");
            let Some(Event::Message(answer)) = here.next().await else { panic!("an answer") };
            assert!(answer.read(|bytes| bytes.chunks().count()) > 20);
            assert_eq!(read(&answer), message(number, 12_000));
        }
        let longest = message(0, 40_000);
        assert_eq!(here.send(&longest, Reliability::Reliable).await, Err(SendError::NeverFits));
    });
}

#[test]
fn a_full_pool_makes_senders_wait_and_loses_nothing() {
    run(async {
        let mut net = Net::new(Wire::losing(2));
        let client = net.player::<1, 12, 64, 4>(0, |_| {});
        let server = net.player::<1, 12, 64, 4>(PORT, |config| config.max_incoming = 1);
        let sender = async {
            let here = client.handle.connect(server.address).await.expect("a connection");
            let mut full = 0;
            while here.try_send(&message(full, 60), Reliability::Reliable).is_ok() {
                full += 1;
            }
            assert!((1..12).contains(&full), "{full} messages fit");
            for number in full..300 {
                here.send(&message(number, 60), Reliability::Reliable).await.expect("room at last");
            }
            here.disconnect().await;
            assert_eq!(here.closed_reason(), Some(DisconnectReason::Local));
        };
        let reader = async {
            let there = server.handle.accept().await;
            let mut numbers = Vec::new();
            while let Some(message) = there.recv().await {
                numbers.push(u32::from_be_bytes(read(&message)[1..5].try_into().expect("a number")));
            }
            numbers.sort_unstable();
            numbers
        };
        let ((), numbers) = tokio::join!(sender, reader);
        assert_eq!(numbers, (0..300).collect::<Vec<_>>());
        until(|| client.handle.blocks_available() == 12 && server.handle.blocks_available() == 12).await;
    });
}

#[test]
fn a_slow_reader_holds_up_nobody_else() {
    run(async {
        let mut net = Net::new(Wire::losing(0));
        let host = net.player::<2, 96, 128, 8>(PORT, |config| config.max_incoming = 2);
        let (lazy, eager) = (net.player::<1, 24, 128, 4>(0, |_| {}), net.player::<1, 24, 128, 4>(0, |_| {}));
        let unread = lazy.handle.connect(host.address).await.expect("a connection");
        let not_reading = host.handle.accept().await;
        unread.send(&message(7, 20), Reliability::Reliable).await.expect("an open end");
        tokio::task::spawn_local(async move { echo(host.handle.accept().await).await });
        let here = eager.handle.connect(host.address).await.expect("a connection");
        for number in 0..50 {
            here.send(&message(number, 30), Reliability::Unreliable).await.expect("an open end");
            assert_eq!(read(&here.recv().await.expect("an answer")), message(number, 30));
        }
        let at_last = not_reading.recv().await.expect("what was sent long ago");
        assert_eq!(read(&at_last), message(7, 20));
    });
}

#[test]
fn each_attempt_leaves_from_a_fresh_port() {
    run(async {
        let (client, server) = players(Wire::losing(0));
        let mut ports = Vec::new();
        for _ in 0..3 {
            let connect = async { client.handle.connect(server.address).await.expect("a connection") };
            let (opened, accepted) = tokio::join!(connect, server.handle.accept());
            ports.push(accepted.remote().port());
            opened.send(&message(1, 9), Reliability::Reliable).await.expect("an open end");
            assert_eq!(read(&accepted.recv().await.expect("a message")), message(1, 9));
            opened.disconnect().await;
            assert!(accepted.recv().await.is_none());
            assert_eq!(accepted.closed_reason(), Some(DisconnectReason::Remote));
        }
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), 3);
    });
}

#[test]
fn a_client_with_a_port_of_its_own_or_another_connection_keeps_it() {
    run(async {
        let mut net = Net::new(Wire::losing(0));
        let fixed = net.player::<1, 24, 128, 4>(4_000, |_| {});
        let busy = net.player::<2, 24, 128, 4>(0, |_| {});
        let servers: Vec<_> =
            (0..2).map(|_| net.player::<2, 48, 128, 4>(PORT, |config| config.max_incoming = 2)).collect();
        let mut ports = Vec::new();
        let mut held = Vec::new();
        for server in &servers {
            held.push(busy.handle.connect(server.address).await.expect("a connection"));
            ports.push(server.handle.accept().await.remote().port());
        }
        assert_eq!(ports[0], ports[1]);
        let _connection = fixed.handle.connect(servers[0].address).await.expect("a connection");
        assert_eq!(servers[0].handle.accept().await.remote().port(), 4_000);
    });
}

/// What was sent before the last holder left is delivered from the port that the other peer knows.
#[test]
fn a_connection_that_is_ending_keeps_its_port() {
    run(async {
        let mut net = Net::new(Wire::losing(0));
        let client = net.player::<2, 24, 128, 4>(0, |_| {});
        let servers: Vec<_> =
            (0..2).map(|_| net.player::<2, 48, 128, 4>(PORT, |config| config.max_incoming = 2)).collect();
        let connect = client.handle.connect(servers[0].address);
        let (first, accepted) = tokio::join!(connect, servers[0].handle.accept());
        let first = first.expect("a connection");
        first.send(&message(1, 300), Reliability::Reliable).await.expect("an open end");
        drop(first);
        let _second = client.handle.connect(servers[1].address).await.expect("a connection");
        assert_eq!(read(&accepted.recv().await.expect("a message")), message(1, 300));
        assert!(accepted.recv().await.is_none());
        assert_eq!(accepted.closed_reason(), Some(DisconnectReason::Remote));
    });
}

#[test]
fn who_does_not_answer_is_told_of() {
    run(async {
        let mut net = Net::new(Wire::losing(0));
        let client = net.player::<1, 24, 128, 4>(0, |config| {
            config.handshake_timeout = std::time::Duration::from_millis(200);
        });
        let nobody = ([10, 0, 0, 9], PORT).into();
        let error = client.handle.connect(nobody).await.expect_err("nobody");
        assert_eq!(error.to_string(), "the server does not answer");
        // The place of that attempt is free again, and one at a time has it.
        let (first, second) = tokio::join!(client.handle.connect(nobody), client.handle.connect(nobody));
        assert!(matches!(first, Err(ConnectError::Failed(_))), "{first:?}");
        assert!(matches!(second, Err(ConnectError::NotTried(_))), "{second:?}");
    });
}

#[test]
fn a_reader_that_gives_up_takes_no_message() {
    run(async {
        let (_client, _server, here, there) = connected(Wire::losing(0)).await;
        for number in 0..50 {
            assert!(give_up(there.recv()));
            let arrived = || there.stats().map_or(0, |stats| stats.chunks_received);
            let before = arrived();
            here.send(&message(number, 20), Reliability::Reliable).await.expect("an open end");
            until(|| arrived() > before).await;
            let received = there.recv().await.expect("a message");
            assert_eq!(read(&received), message(number, 20));
        }
    });
}

#[test]
fn a_sender_that_gives_up_has_sent_nothing() {
    run(async {
        let (_client, _server, here, there) = connected(Wire::losing(0)).await;
        let mut sent = 0;
        while here.try_send(&message(sent, 100), Reliability::Reliable).is_ok() {
            sent += 1;
        }
        assert!(give_up(here.send(&message(999, 100), Reliability::Reliable)));
        here.send(&message(sent, 100), Reliability::Reliable).await.expect("room at last");
        let mut numbers = Vec::new();
        while numbers.len() <= sent as usize {
            let bytes = read(&there.recv().await.expect("a message"));
            numbers.push(u32::from_be_bytes(bytes[1..5].try_into().expect("a number")));
        }
        numbers.sort_unstable();
        assert_eq!(numbers, (0..=sent).collect::<Vec<_>>());
        assert!(there.try_recv().is_none());
    });
}

#[test]
fn an_attempt_that_is_given_up_leaves_its_place() {
    run(async {
        let (client, server) = players(Wire::losing(0));
        for _ in 0..5 {
            // The only place of this client is free again soon, or the next attempt would find it taken for ever.
            until(|| give_up(client.handle.connect(server.address))).await;
        }
        assert!(give_up(server.handle.accept()));
        let opened = loop {
            match client.handle.connect(server.address).await {
                Ok(connection) => break connection,
                // The last attempt is still being ended.
                Err(_) => tokio::task::yield_now().await,
            }
        };
        let accepted = server.handle.accept().await;
        drop(opened);
        assert!(accepted.recv().await.is_none());
        assert_eq!(accepted.closed_reason(), Some(DisconnectReason::Remote));
    });
}

#[test]
fn a_connection_ends_with_its_last_holder() {
    run(async {
        let (_client, server, here, there) = connected(Wire::losing(0)).await;
        let reader = here.clone();
        drop(here);
        reader.send(&message(1, 9), Reliability::Reliable).await.expect("an open end");
        assert_eq!(read(&there.recv().await.expect("a message")), message(1, 9));
        reader.send(&message(2, 9), Reliability::Reliable).await.expect("an open end");
        // It waits until that has arrived.
        assert!(give_up(reader.disconnect()));
        assert_eq!(reader.send(&message(0, 9), Reliability::Reliable).await, Err(SendError::NotConnected));
        assert_eq!(read(&there.recv().await.expect("a message")), message(2, 9));
        assert!(there.recv().await.is_none());
        drop(there);
        until(|| server.handle.blocks_available() == 48).await;
    });
}

#[test]
fn what_is_lent_stays_while_the_network_goes_on() {
    run(async {
        let (_client, _server, here, there) = connected(Wire::losing(0)).await;
        here.send(&message(0, 2_000), Reliability::Reliable).await.expect("an open end");
        let first = there.recv().await.expect("a message");
        here.send(&message(1, 30), Reliability::Reliable).await.expect("an open end");
        // Nobody gets another one meanwhile …
        assert!(there.try_recv().is_none());
        there.send(&message(9, 9), Reliability::Reliable).await.expect("an open end");
        assert_eq!(read(&here.recv().await.expect("a message")), message(9, 9));
        // … and it is what it was, even when the connection is over.
        here.disconnect().await;
        assert_eq!(read(&first), message(0, 2_000));
        drop(first);
        assert_eq!(read(&there.recv().await.expect("a message")), message(1, 30));
        assert!(there.recv().await.is_none());
    });
}
