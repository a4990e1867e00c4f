//! Messages between machines: with loss, in parts, with little memory, with several clients.

use rakwire::raknet::{Delivery, DisconnectReason, Outcome, Reliability, SendError, SetError};
use rakwire_embassy::raknet::{ConnectError, Connection, Event, PingError};

use crate::support::{Net, PORT, Wire, bytes, join, message, pair, run};

/// Sends everything back until the end.
async fn echo(connection: Connection<'static>) -> DisconnectReason {
    while let Some(message) = connection.recv().await {
        let (delivery, copy) = (message.delivery(), bytes(&message));
        drop(message);
        // The other side may have gone with what it wanted.
        let _ = connection.send(&copy, delivery).await;
    }
    connection.closed_reason().expect("an end")
}

async fn round_trips(connection: &Connection<'static>, count: u32, length: usize) {
    for number in 0..count {
        connection.send(&message(number, length), Delivery::RELIABLE_ORDERED).await.expect("an open end");
        let answer = connection.recv().await.expect("an answer");
        assert_eq!(bytes(&answer), message(number, length));
        assert_eq!(answer.delivery().reliability, Reliability::ReliableOrdered);
    }
}

#[test]
fn round_trips_survive_loss() {
    run(async {
        let (client, server) = pair(Wire::losing(20));
        let accepted = async { echo(server.handle.accept().await).await };
        let asked = async {
            let connection = join(&client, server.address).await;
            assert_eq!((connection.remote(), connection.closed_reason()), (server.address, None));
            round_trips(&connection, 100, 40).await;
            connection.disconnect().await;
            assert_eq!(connection.closed_reason(), Some(DisconnectReason::Local));
        };
        let ((), reason) = tokio::join!(asked, accepted);
        // At such a loss the farewell may be among what got lost.
        assert!(matches!(reason, DisconnectReason::Remote | DisconnectReason::Lost), "{reason}");
        assert!(client.handle.stats().datagrams_sent > 100);
    });
}

#[test]
fn twenty_kilobytes_travel_in_parts_both_ways() {
    run(async {
        let mut net = Net::new(Wire::losing(5));
        let client = net.machine::<1, 512, 256, 8>(|_| {});
        let server = net.machine::<1, 512, 256, 8>(|config| config.max_incoming = 1);
        tokio::task::spawn_local(async move { echo(server.handle.accept().await).await });
        let connection = client.handle.connect(server.address).await.expect("a connection");
        round_trips(&connection, 3, 20_000).await;
    });
}

#[test]
fn what_was_read_leaves_its_memory_to_the_answer() {
    run(async {
        let mut net = Net::new(Wire::losing(0));
        let client = net.machine::<1, 48, 64, 4>(|_| {});
        let server = net.machine::<1, 48, 64, 4>(|config| config.max_incoming = 1);
        tokio::task::spawn_local(async move { echo(server.handle.accept().await).await });
        let connection = client.handle.connect(server.address).await.expect("a connection");
        for number in 0..5 {
            // More than a third of all memory, there and back.
            let sent = message(number, 19 * 64);
            connection.send(&sent, Delivery::RELIABLE).await.expect("an open end");
            assert_eq!(bytes(&connection.recv().await.expect("an answer")), sent);
        }
    });
}

#[test]
fn a_full_pool_makes_senders_wait_and_loses_nothing() {
    run(async {
        let mut net = Net::new(Wire::losing(2));
        let client = net.machine::<1, 12, 64, 2>(|_| {});
        let server = net.machine::<1, 12, 64, 2>(|config| config.max_incoming = 1);
        let sender = async {
            let connection = client.handle.connect(server.address).await.expect("a connection");
            let mut full = 0;
            while connection.try_send(&message(0, 60), Delivery::RELIABLE_ORDERED).is_ok() {
                full += 1;
            }
            assert!((1..12).contains(&full), "{full} messages fit");
            let error = connection.try_send(&message(0, 60), Delivery::RELIABLE_ORDERED).unwrap_err();
            assert!(matches!(error, SendError::QuotaExceeded | SendError::PoolExhausted), "{error}");
            for number in 1..300 {
                connection
                    .send(&message(number, 60), Delivery::RELIABLE_ORDERED)
                    .await
                    .expect("room at last");
            }
            connection.disconnect().await;
            full
        };
        let reader = async {
            let connection = server.handle.accept().await;
            let mut numbers = Vec::new();
            while let Some(message) = connection.recv().await {
                numbers.push(bytes(&message)[4] as u32 + 256 * bytes(&message)[3] as u32);
            }
            numbers
        };
        let (full, numbers) = tokio::join!(sender, reader);
        let expected: Vec<u32> = std::iter::repeat_n(0, full).chain(1..300).collect();
        assert_eq!(numbers, expected);
        while client.handle.blocks_available() < 12 || server.handle.blocks_available() < 12 {
            tokio::task::yield_now().await;
        }
    });
}

#[test]
fn four_clients_play_with_one_host() {
    run(async {
        let mut net = Net::new(Wire::losing(3));
        let host = net.machine::<4, 96, 128, 8>(|config| config.max_incoming = 4);
        let clients: Vec<_> = (0..4).map(|_| net.machine::<1, 24, 128, 4>(|_| {})).collect();
        let (handle, address) = (host.handle, host.address);
        tokio::task::spawn_local(async move {
            loop {
                tokio::task::spawn_local(echo(handle.accept().await));
            }
        });
        let players: Vec<_> = clients
            .iter()
            .map(|client| {
                let handle = client.handle;
                tokio::task::spawn_local(async move {
                    let connection = handle.connect(address).await.expect("a connection");
                    round_trips(&connection, 50, 100).await;
                    connection
                })
            })
            .collect();
        let mut connections = Vec::new();
        for player in players {
            connections.push(player.await.expect("no panic"));
        }
        let late = net.machine::<1, 24, 128, 4>(|config| config.connect_attempts = 3);
        let refused = late.handle.connect(address).await.expect_err("a full host");
        assert!(matches!(refused, ConnectError::Failed(_)), "{refused}");
        assert_eq!(refused.to_string(), "the server is full");

        // Whoever leaves makes room.
        connections.pop().expect("one").disconnect().await;
        let connection = join(&late, address).await;
        round_trips(&connection, 5, 100).await;
    });
}

#[test]
fn a_slow_reader_holds_up_nobody_else() {
    run(async {
        let mut net = Net::new(Wire::losing(0));
        let host = net.machine::<2, 96, 128, 8>(|config| config.max_incoming = 2);
        let (lazy, eager) = (net.machine::<1, 24, 128, 4>(|_| {}), net.machine::<1, 24, 128, 4>(|_| {}));
        let unread = lazy.handle.connect(host.address).await.expect("a connection");
        let not_reading = host.handle.accept().await;
        unread.send(&message(7, 20), Delivery::RELIABLE_ORDERED).await.expect("an open end");
        tokio::task::spawn_local(async move { echo(host.handle.accept().await).await });
        let connection = eager.handle.connect(host.address).await.expect("a connection");
        round_trips(&connection, 50, 30).await;
        let message_at_last = not_reading.recv().await.expect("what was sent long ago");
        assert_eq!(bytes(&message_at_last), message(7, 20));
    });
}

#[test]
fn receipts_tell_what_became_of_messages() {
    run(async {
        let (client, server) = pair(Wire::losing(0));
        tokio::task::spawn_local(async move { echo(server.handle.accept().await).await });
        let connection = client.handle.connect(server.address).await.expect("a connection");
        let delivery = Delivery::new(Reliability::ReliableOrderedWithReceipt);
        let sent = connection.send(&message(1, 9), delivery).await.expect("an open end").expect("a receipt");
        let (mut acknowledged, mut answered) = (0, 0);
        while acknowledged + answered < 2 {
            match connection.next().await.expect("an open end") {
                Event::Receipt { receipt, outcome } => {
                    assert_eq!((receipt, outcome), (sent, Outcome::Acknowledged));
                    acknowledged += 1;
                }
                Event::Message(echo) => {
                    assert_eq!(bytes(&echo), message(1, 9));
                    answered += 1;
                }
                event @ (Event::Progress(_) | _) => panic!("{event:?}"),
            }
        }
        assert_eq!((acknowledged, answered), (1, 1));
    });
}

#[test]
fn servers_are_found_by_their_pongs() {
    run(async {
        let (client, server) = pair(Wire::losing(0));
        assert_eq!(server.handle.set_advertisement(b"our game"), Ok(()));
        assert_eq!(server.handle.set_advertisement(&[0; 400]), Err(SetError::AdvertisementTooLong));
        let patience = embassy_time::Duration::from_secs(20);
        let mut buffer = [0; 64];
        let pong = client.handle.ping(server.address, patience).await.expect("a pong");
        assert_eq!((pong.from(), pong.copy_to(&mut buffer)), (server.address, Some(&b"our game"[..])));
        drop(pong);
        let everybody = (std::net::Ipv4Addr::BROADCAST, PORT).into();
        let pong = client.handle.discover(everybody, patience).await.expect("a pong");
        assert_eq!(pong.from(), server.address);
        drop(pong);
        let nobody = ([10, 0, 0, 9], PORT).into();
        let error = client.handle.ping(nobody, embassy_time::Duration::from_millis(50)).await;
        assert!(matches!(error, Err(PingError::NoAnswer)));
    });
}
