//! Tests of RakNet endpoints only.

use std::net::SocketAddr;
use std::time::Duration;

use rakwire_native::codec::bitstream::{BitStreamReader, BitStreamWriter};
use rakwire_native::raknet::Amount;
use rakwire_native::{
    Channel, ConnectError, ConnectFailure, ConnectOptions, Delivery, Direction, DropReason, Endpoint,
    Options, Outcome, PingError, Progress, Reliability, SendError, SetError, id,
};

use crate::endpoint::subject::{
    self, deliver_unreliable, echo_all, join, message, receive, silent_socket, until,
};
use crate::support::DEADLINE;

async fn server(change: impl FnOnce(&mut Options)) -> Endpoint {
    subject::server(change).await
}

async fn client(change: impl FnOnce(&mut Options)) -> Endpoint {
    subject::client(change).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_reliability_is_delivered_in_both_directions() {
    let (server, client) = (server(|_| {}).await, client(|_| {}).await);
    let (here, there) = join(&client, &server).await;
    let channel = Channel::new(5).expect("a channel below 32");
    for (number, reliability) in
        [Reliability::Reliable, Reliability::ReliableOrdered, Reliability::ReliableSequenced]
            .into_iter()
            .enumerate()
    {
        let delivery = Delivery::new(reliability);
        let delivery = if reliability.has_channel() { delivery.on(channel) } else { delivery };
        for (from, to) in [(&here, &there), (&there, &here)] {
            from.send(&message(100, number), delivery).await.expect("an open connection");
            let received = receive(to).await;
            assert_eq!(received.bytes, message(100, number));
            assert_eq!(received.delivery, delivery);
        }
    }
    assert_eq!(here.guid(), server.guid());
    assert_eq!((here.remote(), there.remote()), (server.local_addr(), client.local_addr()));
    let stats = here.stats().expect("an open connection");
    assert_eq!((stats.messages_sent, stats.messages_received), (3, 3));
    let sequenced = Delivery::new(Reliability::UnreliableSequenced).on(channel);
    for (number, delivery) in [(3, Delivery::UNRELIABLE), (4, sequenced)] {
        for (from, to) in [(&here, &there), (&there, &here)] {
            let received = deliver_unreliable(from, to, &message(100, number), delivery).await;
            assert_eq!(received.delivery, delivery);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_of_one_megabyte_arrives_in_both_directions() {
    let (server, client) = (server(|_| {}).await, client(|_| {}).await);
    let (here, there) = join(&client, &server).await;
    let (up, down) = (message(1_000_000, 1), message(1_000_000, 2));
    let (sent_up, sent_down, got_up, got_down) = tokio::join!(
        here.send(&up, Delivery::RELIABLE_ORDERED),
        there.send(&down, Delivery::RELIABLE_ORDERED),
        receive(&there),
        receive(&here),
    );
    assert_eq!((sent_up, sent_down), (Ok(None), Ok(None)));
    assert!(got_up.bytes == up && got_down.bytes == down);
    // Memory of messages in flight is freed.
    until("all memory is free", || subject::has_no_messages(&client)).await;
    assert_eq!(
        here.send(&message(8_000_000, 1), Delivery::RELIABLE).await,
        Err(SendError::NeverFits),
        "more than half of the memory"
    );
    assert_eq!(here.send(&[], Delivery::RELIABLE).await, Err(SendError::Empty));
    assert_eq!(here.send(&[0x1A], Delivery::RELIABLE).await, Err(SendError::ReservedId));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pings_return_pongs_or_errors() {
    let (server, client) = (server(|_| {}).await, client(|_| {}).await);
    assert_eq!(server.set_advertisement(b"a game"), Ok(()));
    assert_eq!(server.set_advertisement(&[0; 400]), Err(SetError::AdvertisementTooLong));
    let (one, two) =
        tokio::join!(client.ping(server.local_addr(), DEADLINE), client.ping(server.local_addr(), DEADLINE));
    let pong = one.expect("a pong");
    assert_eq!((pong.from, pong.identity), (server.local_addr(), server.guid()));
    assert_eq!(pong.data, b"a game");
    assert!(two.is_ok());

    let (_socket, silent) = silent_socket();
    let nothing = client.ping(silent, Duration::from_millis(50)).await;
    assert_eq!(nothing, Err(PingError::NoAnswer));
    // Cancelled pings free their slots.
    for _ in 0..20 {
        let (_socket, address) = silent_socket();
        let nothing = client.ping(address, Duration::from_millis(1)).await;
        assert_eq!(nothing, Err(PingError::NoAnswer));
    }
    let v6: SocketAddr = "[::1]:19132".parse().expect("a literal address");
    assert_eq!(client.ping(v6, DEADLINE).await, Err(PingError::AddressFamily));
    client.close().await;
    assert_eq!(client.ping(server.local_addr(), DEADLINE).await, Err(PingError::EndpointClosed));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_versions_and_excess_clients_are_refused() {
    let client = client(|_| {}).await;
    let picky = server(|options| {
        options.config.accepted_versions.clear();
        options.config.accepted_versions.push(10).expect("space for one");
    })
    .await;
    let six = ConnectOptions { protocol_version: Some(6), ..ConnectOptions::default() };
    let refused = client.connect_with(picky.local_addr(), &six).await;
    let expected = ConnectFailure::IncompatibleProtocol { server: 10 };
    assert_eq!(refused.err(), Some(ConnectError::Failed(expected)));

    let small = server(|options| options.config.max_incoming = 1).await;
    let _first = client.connect(small.local_addr()).await.expect("a connection");
    let second = self::client(|_| {}).await.connect(small.local_addr()).await;
    assert_eq!(second.err().map(|error| error.to_string()).as_deref(), Some("the server is full"));
}

fn only_bedrock(options: &mut Options) {
    options.config.accepted_versions.clear();
    options.config.accepted_versions.push(11).expect("space for one");
}

/// A proxy for one client of `server`.
///
/// After a reply that requires another version, the proxy drops the next `blocked` datagrams from the client. go-raknet
/// servers drop all of them for at least 10 s.
async fn block_after_another_version(server: SocketAddr, blocked: usize) -> SocketAddr {
    let front = tokio::net::UdpSocket::bind("127.0.0.1:0").await.expect("a free port");
    let back = tokio::net::UdpSocket::bind("127.0.0.1:0").await.expect("a free port");
    let address = front.local_addr().expect("a bound socket");
    tokio::spawn(async move {
        let (mut to_drop, mut client) = (0, None);
        let (mut up, mut down) = ([0; 2_048], [0; 2_048]);
        loop {
            tokio::select! {
                Ok((length, from)) = front.recv_from(&mut up) => {
                    client = Some(from);
                    if to_drop > 0 {
                        to_drop -= 1;
                    } else {
                        back.send_to(&up[..length], server).await.expect("loopback accepts the datagram");
                    }
                }
                Ok((length, _)) = back.recv_from(&mut down) => {
                    to_drop = if down[0] == id::INCOMPATIBLE_PROTOCOL_VERSION { blocked } else { to_drop };
                    let client = client.expect("a client");
                    front.send_to(&down[..length], client).await.expect("loopback accepts the datagram");
                }
            }
        }
    });
    address
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_connects_after_a_server_has_blocked_it_for_another_version() {
    let server = echo_all(server(only_bedrock).await);
    let client = client(|options| {
        options.config.connect_interval = Duration::from_millis(20);
        options.config.learn_version = false;
    })
    .await;
    let address = block_after_another_version(server.local_addr(), 30).await;
    let patient = ConnectOptions { connect_timeout: Some(DEADLINE), ..ConnectOptions::default() };
    let connection = client.connect_with(address, &patient).await.expect("a connection");
    connection.send(&message(10, 0), Delivery::RELIABLE).await.expect("an open connection");
    receive(&connection).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_failure_of_a_blocked_client_contains_the_version_of_the_server() {
    let server = echo_all(server(only_bedrock).await);
    let client = client(|options| {
        options.config.connect_interval = Duration::from_millis(20);
        options.config.learn_version = false;
    })
    .await;
    let expected = ConnectFailure::NoAnswerAfterIncompatible { server: 11 };
    for connect_timeout in [1, 10, 60].map(Duration::from_secs) {
        let address = block_after_another_version(server.local_addr(), usize::MAX).await;
        let options = ConnectOptions { connect_timeout: Some(connect_timeout), ..ConnectOptions::default() };
        let Some(ConnectError::Failed(failure)) = client.connect_with(address, &options).await.err() else {
            panic!("no client can connect");
        };
        if failure == expected {
            return;
        }
        assert_eq!(failure, ConnectFailure::NoAnswer, "the answer was late");
    }
    panic!("no answer was in time");
}

/// A server that blocks clients after a wrong version therefore never receives one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_queries_the_version_of_the_server_before_its_first_request() {
    let server = echo_all(server(only_bedrock).await);
    let client = client(|_| {}).await;
    let address = block_after_another_version(server.local_addr(), usize::MAX).await;
    let connection = client.connect(address).await.expect("a connection");
    connection.send(&message(10, 0), Delivery::RELIABLE).await.expect("an open connection");
    receive(&connection).await;
}

/// A client that pings servers before it connects learns the version of each.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ping_returns_the_version() {
    let server = echo_all(server(only_bedrock).await);
    let client = client(|_| {}).await;
    let address = block_after_another_version(server.local_addr(), usize::MAX).await;
    let pong = client.ping(address, DEADLINE).await.expect("a pong");
    assert_eq!(pong.data, b"");
    client.connect(address).await.expect("a connection");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn malformed_datagrams_are_counted_and_close_no_connection() {
    let server = echo_all(server(|_| {}).await);
    let client = client(|_| {}).await;
    let connection = client.connect(server.local_addr()).await.expect("a connection");
    let (socket, _) = silent_socket();
    let send =
        |bytes: &[u8]| socket.send_to(bytes, server.local_addr()).expect("loopback accepts the datagram");
    send(&[]);
    send(&[1]);
    send(&[0x84, 0, 0, 0, 0xFF]);
    send(&[5; 600]);
    send(&[0x84; 3_000]);
    send(&[0x84; 60_000]);
    until("everything was counted", || {
        let stats = server.stats();
        let drops = [DropReason::TooShort, DropReason::UnknownSource, DropReason::BadOffline];
        stats.too_long == 2 && drops.iter().all(|reason| stats.peer.dropped(*reason) > 0)
    })
    .await;
    connection.send(&message(10, 0), Delivery::RELIABLE).await.expect("an open connection");
    receive(&connection).await;
    assert_eq!(server.stats().connections, 1);
}

#[tokio::test]
async fn a_receipt_reports_that_a_message_arrived() {
    let (server, client) = (server(|_| {}).await, client(|_| {}).await);
    let (here, there) = join(&client, &server).await;
    let with_receipt = Delivery::new(Reliability::ReliableOrderedWithReceipt);
    let first = here.send(&message(10, 0), with_receipt).await.expect("an open connection");
    let second = here.send(&message(200_000, 1), with_receipt).await.expect("an open connection");
    assert_eq!(here.send(&message(10, 2), Delivery::RELIABLE_ORDERED).await, Ok(None));
    for expected in [first, second] {
        let (receipt, outcome) = here.recv_receipt().await.expect("an open connection");
        assert_eq!((Some(receipt), outcome), (expected, Outcome::Acknowledged));
        assert!(there.recv().await.is_some());
    }
    here.disconnect().await;
    assert_eq!(here.recv_receipt().await, None);
}

/// Both sides receive increasing progress of a large message, up to its last fragment.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_message_reports_progress_to_both_sides() {
    const PARTS: u32 = 200;
    let server = server(|options| options.config.progress_interval = 20).await;
    let client = client(|options| options.config.progress_interval = 10).await;
    let (here, there) = join(&client, &server).await;
    // At the largest MTU, fragments have 1,432 bytes.
    let large = message(1_432 * 200, 0);
    here.send(&large, Delivery::RELIABLE).await.expect("an open connection");
    assert_eq!(receive(&there).await.bytes, large);
    for (connection, direction, step) in [(&there, Direction::Receiving, 20), (&here, Direction::Sending, 10)]
    {
        let mut before = 0;
        while before < PARTS {
            let progress = tokio::time::timeout(DEADLINE, connection.recv_progress()).await;
            let Progress { direction: reported, message, done, parts } =
                progress.expect("progress in time").expect("an open connection");
            assert_eq!((reported, message, parts, done % step), (direction, 0, PARTS, 0));
            assert!(done > before, "{done} after {before}");
            before = done;
        }
        assert_eq!(before, PARTS);
    }
    here.disconnect().await;
    assert_eq!(here.recv_progress().await, None);
}

/// RakNet's own ids are refused with a specific error. All other messages arrive, whatever their first byte.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reserved_ids_are_refused() {
    let (server, client) = (server(|_| {}).await, client(|_| {}).await);
    let (here, there) = join(&client, &server).await;
    for first in 0..=u8::MAX {
        let sent = here.send(&[first], Delivery::RELIABLE_ORDERED).await;
        assert_eq!(sent, if first < id::TIMESTAMP { Err(SendError::ReservedId) } else { Ok(None) });
    }
    for first in id::TIMESTAMP..=u8::MAX {
        assert_eq!(receive(&there).await.bytes, [first]);
    }
    assert_eq!(here.send(&[], Delivery::RELIABLE).await, Err(SendError::Empty));
    here.disconnect().await;
    assert_eq!(here.send(&[id::USER], Delivery::RELIABLE).await, Err(SendError::NotConnected));
}

/// Both endpoints connect to each other at the same time, and a single connection results.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_endpoints_may_connect_to_each_other_simultaneously() {
    let bind = || Endpoint::bind("127.0.0.1:0", Options::server(2).expect("entropy"));
    let (first, second) = (bind().await.expect("a free port"), bind().await.expect("a free port"));
    for round in 0..20 {
        let (there, here) =
            tokio::join!(first.connect(second.local_addr()), second.connect(first.local_addr()));
        let connections = [there.ok(), here.ok()];
        // If the own attempt came second, the endpoint accepts the connection of the other endpoint.
        let accepted = match &connections {
            [Some(_), None] => second.accept().await,
            [None, Some(_)] => first.accept().await,
            [Some(_), Some(_)] => None,
            [None, None] => panic!("round {round}: no connection"),
        };
        let ends: Vec<_> = connections.into_iter().flatten().chain(accepted).collect();
        assert_eq!(ends.len(), 2, "round {round}");
        for end in &ends {
            assert_eq!(end.internal_addresses(), [end.remote()]);
            end.send(b"\xFEhello", Delivery::RELIABLE_ORDERED).await.expect("an open connection");
        }
        for end in &ends {
            assert_eq!(end.recv().await.expect("a message").bytes, b"\xFEhello");
        }
        let [one, other] = &ends[..] else { panic!("two ends") };
        one.disconnect().await;
        while other.recv().await.is_some() {}
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_are_found_by_guid_and_measured() {
    let (server, client) = (server(|_| {}).await, client(|_| {}).await);
    let (here, there) = join(&client, &server).await;
    assert_eq!(server.remote_of(there.guid()), Some(client.local_addr()));
    assert_eq!(client.remote_of(here.guid()), Some(server.local_addr()));
    assert_eq!(server.remote_of(server.guid()), None);

    here.send(b"\x90hello", Delivery::RELIABLE_ORDERED).await.expect("an open connection");
    assert!(there.recv().await.is_some());
    let measured = || here.stats().expect("an open connection").clock_difference.is_some();
    until("the first ping is answered", measured).await;
    let stats = here.stats().expect("an open connection");
    let sent: Amount = stats.actual_bytes_sent;
    assert!(sent.total >= 6 && u64::from(sent.last_second) <= sent.total, "{sent:?}");
    there.disconnect().await;
    until("the connection is closed", || server.remote_of(client.guid()).is_none()).await;
}

/// A message is encoded and decoded with this crate's exports only.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn this_crate_exports_codecs_for_message_contents() {
    let (server, client) = (server(|_| {}).await, client(|_| {}).await);
    let (here, there) = join(&client, &server).await;
    let mut buffer = [0; 16];
    let mut writer = BitStreamWriter::new(&mut buffer);
    writer
        .write(0x90_u8)
        .and_then(|()| writer.write(-7_i32))
        .and_then(|()| writer.write(true))
        .expect("enough space");
    here.send(writer.finish(), Delivery::RELIABLE_ORDERED).await.expect("an open connection");
    let message = there.recv().await.expect("a message");
    let mut reader = BitStreamReader::new(&message.bytes);
    assert_eq!((reader.read(), reader.read(), reader.read()), (Ok(0x90_u8), Ok(-7_i32), Ok(true)));
}
