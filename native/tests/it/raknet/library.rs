//! Endpoints over loopback.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use rakwire_native::{
    BindError, Capacity, Channel, ConnectError, ConnectFailure, Connection, Delivery, Direction,
    DisconnectReason, DropReason, Endpoint, Options, Outcome, PingError, Progress, Reliability, SendError,
    SetError, id,
};

const LOCAL: &str = "127.0.0.1:0";
/// Longer than anything here takes on the slowest machine.
const PATIENCE: Duration = Duration::from_secs(60);

async fn bind(options: Options) -> Endpoint {
    Endpoint::bind(LOCAL, options).await.expect("a free port")
}

async fn server(change: impl FnOnce(&mut Options)) -> Endpoint {
    let mut options = Options::server(256).expect("entropy");
    change(&mut options);
    bind(options).await
}

async fn client(change: impl FnOnce(&mut Options)) -> Endpoint {
    let mut options = Options::client().expect("entropy");
    change(&mut options);
    bind(options).await
}

/// Both ends of a new connection.
async fn join(client: &Endpoint, server: &Endpoint) -> (Connection, Connection) {
    let (here, there) = tokio::join!(client.connect(server.local_addr()), server.accept());
    (here.expect("a connection"), there.expect("the same connection"))
}

/// Waits until `condition` holds.
async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let wait = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("{what} never happened"));
}

async fn receive(connection: &Connection) -> rakwire_native::Incoming {
    let received = tokio::time::timeout(PATIENCE, connection.recv()).await;
    received.expect("a message in time").expect("an open connection")
}

fn message(length: usize, number: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..length).map(|at| (at * 7 + at / 256 * 13 + number * 31) as u8).collect();
    bytes[0] = 0x90;
    bytes
}

fn echo_all(server: Endpoint) -> Arc<Endpoint> {
    let server = Arc::new(server);
    let accepting = Arc::clone(&server);
    tokio::spawn(async move {
        while let Some(connection) = accepting.accept().await {
            tokio::spawn(async move {
                while let Some(message) = connection.recv().await {
                    if connection.send(&message.bytes, message.delivery).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    server
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_reliability_keeps_its_delivery() {
    let (server, client) = (server(|_| {}).await, client(|_| {}).await);
    let (here, there) = join(&client, &server).await;
    let channel = Channel::new(5).expect("a channel below 32");
    for (number, reliability) in [
        Reliability::Unreliable,
        Reliability::UnreliableSequenced,
        Reliability::Reliable,
        Reliability::ReliableOrdered,
        Reliability::ReliableSequenced,
    ]
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
    assert_eq!((stats.messages_sent, stats.messages_received), (5, 5));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_megabyte_travels_both_ways() {
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
    // Whatever was on its way is given back.
    until("all memory is free", || client.stats().blocks_available == client.stats().blocks).await;
    assert_eq!(
        here.send(&message(8_000_000, 1), Delivery::RELIABLE).await,
        Err(SendError::TooLong),
        "more than half of the memory"
    );
    assert_eq!(here.send(&[], Delivery::RELIABLE).await, Err(SendError::Empty));
    assert_eq!(here.send(&[0x1A], Delivery::RELIABLE).await, Err(SendError::ReservedId));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_connections_at_once() {
    let server = echo_all(server(|_| {}).await);
    let address = server.local_addr();
    let clients: Vec<_> = (0..100)
        .map(|number| {
            tokio::spawn(async move {
                let client = client(|options| {
                    options.capacity = Capacity { connections: 1, blocks: 256, block_size: 512 };
                })
                .await;
                let connection = client.connect(address).await.expect("a connection");
                for round in 0..20 {
                    let sent = message(50 + round, number);
                    connection.send(&sent, Delivery::RELIABLE_ORDERED).await.expect("an open connection");
                    assert_eq!(receive(&connection).await.bytes, sent);
                }
                client.close().await;
                assert_eq!(connection.closed_reason(), Some(DisconnectReason::Local));
            })
        })
        .collect();
    for client in clients {
        client.await.expect("every echo");
    }
    until("every connection is over", || server.stats().connections == 0).await;
    assert_eq!(server.stats().blocks_available, server.stats().blocks);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_reader_loses_nothing_and_holds_nobody_up() {
    const MESSAGES: usize = 3_000;
    let server = server(|options| options.receive_queue = 64 << 10).await;
    let client = client(|options| {
        options.capacity = Capacity { connections: 2, blocks: 1_024, block_size: 512 };
    })
    .await;
    let (slow, reader) = join(&client, &server).await;
    let other = self::client(|_| {}).await;
    let (quick, quick_reader) = join(&other, &server).await;

    let sender = tokio::spawn(async move {
        for number in 0..MESSAGES {
            slow.send(&message(1_000, number), Delivery::RELIABLE_ORDERED).await.expect("an open connection");
        }
        slow
    });
    until("the queue is full", || server.stats().unread > 0).await;
    assert!(!sender.is_finished(), "3 MB fit nowhere");
    // Nobody reads that connection; the other one works.
    quick.send(&message(10, 0), Delivery::RELIABLE).await.expect("an open connection");
    receive(&quick_reader).await;
    // And its own way back works, too.
    reader.send(&message(10, 1), Delivery::RELIABLE).await.expect("an open connection");

    for number in 0..MESSAGES {
        assert_eq!(receive(&reader).await.bytes, message(1_000, number), "message {number}");
    }
    let slow = sender.await.expect("everything was sent");
    assert_eq!(receive(&slow).await.bytes, message(10, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn try_send_says_when_there_is_no_room() {
    let server = server(|options| options.receive_queue = 1).await;
    let client = client(|options| {
        options.capacity = Capacity { connections: 1, blocks: 64, block_size: 512 };
    })
    .await;
    let (here, there) = join(&client, &server).await;
    let mut sent = 0;
    until("the memory is full", || {
        let result = here.try_send(&message(400, sent), Delivery::RELIABLE_ORDERED);
        sent += usize::from(result.is_ok());
        result == Err(SendError::QuotaExceeded)
    })
    .await;
    for number in 0..sent {
        assert_eq!(receive(&there).await.bytes, message(400, number));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_goodbye_comes_after_what_was_sent() {
    let (server, client) = (server(|_| {}).await, client(|_| {}).await);
    let (here, there) = join(&client, &server).await;
    for number in 0..200 {
        here.send(&message(1_000, number), Delivery::RELIABLE_ORDERED).await.expect("an open connection");
    }
    assert_eq!(here.closed_reason(), None);
    here.disconnect().await;
    assert_eq!(here.closed_reason(), Some(DisconnectReason::Local));
    assert_eq!(here.send(&[0x90], Delivery::RELIABLE).await, Err(SendError::NotConnected));
    assert!(here.recv().await.is_none());

    for number in 0..200 {
        assert_eq!(receive(&there).await.bytes, message(1_000, number));
    }
    assert!(there.recv().await.is_none());
    assert_eq!(there.closed_reason(), Some(DisconnectReason::Remote));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_connection_says_goodbye() {
    let (server, client) = (server(|_| {}).await, client(|_| {}).await);
    let (here, there) = join(&client, &server).await;
    drop(here);
    assert!(tokio::time::timeout(PATIENCE, there.recv()).await.expect("the end in time").is_none());
    assert_eq!(there.closed_reason(), Some(DisconnectReason::Remote));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_outlives_its_endpoint() {
    let (server, client) = (server(|_| {}).await, client(|_| {}).await);
    let (here, there) = join(&client, &server).await;
    drop((client, server));
    here.send(&message(10, 0), Delivery::RELIABLE).await.expect("an open connection");
    assert_eq!(receive(&there).await.bytes, message(10, 0));
    there.disconnect().await;
    assert!(here.recv().await.is_none());
}

/// The other peer vanishes without a word: its runtime stops.
#[test]
fn a_peer_that_falls_silent_is_lost() {
    let runtime = || {
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime")
    };
    let (mine, theirs) = (runtime(), runtime());
    let quick = |options: &mut Options| options.config.timeout = Duration::from_millis(500);
    let server = mine.block_on(server(quick));
    let address = server.local_addr();
    let (vanishing, connection) = theirs.block_on(async {
        let client = client(quick).await;
        let connection = client.connect(address).await.expect("a connection");
        (client, connection)
    });
    theirs.shutdown_background();
    mine.block_on(async {
        let there = server.accept().await.expect("the connection");
        let end = tokio::time::timeout(PATIENCE, there.recv()).await;
        assert_eq!(end.expect("the end in time"), None);
        assert_eq!(there.closed_reason(), Some(DisconnectReason::Lost));
    });
    drop((connection, vanishing));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pings() {
    let (server, client) = (server(|_| {}).await, client(|_| {}).await);
    assert_eq!(server.set_advertisement(b"a game"), Ok(()));
    assert_eq!(server.set_advertisement(&[0; 400]), Err(SetError::AdvertisementTooLong));
    let (one, two) =
        tokio::join!(client.ping(server.local_addr(), PATIENCE), client.ping(server.local_addr(), PATIENCE));
    let pong = one.expect("a pong");
    assert_eq!((pong.from, pong.guid), (server.local_addr(), server.guid()));
    assert_eq!(pong.data, b"a game");
    assert!(two.is_ok());

    let silent = UdpSocket::bind(LOCAL).expect("a free port");
    let silent = silent.local_addr().expect("a bound socket");
    let nothing = client.ping(silent, Duration::from_millis(50)).await;
    assert_eq!(nothing, Err(PingError::NoAnswer));
    // Pings that were given up make room for others.
    for _ in 0..20 {
        let socket = UdpSocket::bind(LOCAL).expect("a free port");
        let address = socket.local_addr().expect("a bound socket");
        let nothing = client.ping(address, Duration::from_millis(1)).await;
        assert_eq!(nothing, Err(PingError::NoAnswer));
    }
    let v6: SocketAddr = "[::1]:19132".parse().expect("a literal address");
    assert_eq!(client.ping(v6, PATIENCE).await, Err(PingError::AddressFamily));
    assert!(matches!(client.connect(v6).await, Err(ConnectError::AddressFamily)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connecting_can_fail() {
    let impatient = |options: &mut Options| {
        options.config.connect_attempts = 3;
        options.config.connect_interval = Duration::from_millis(20);
    };
    let silent = UdpSocket::bind(LOCAL).expect("a free port");
    let client = client(impatient).await;
    let nobody = client.connect(silent.local_addr().expect("a bound socket")).await;
    assert_eq!(nobody.err(), Some(ConnectError::Failed(ConnectFailure::NoAnswer)));

    let picky = server(|options| {
        options.config.accepted_versions.clear();
        options.config.accepted_versions.push(10).expect("room for one");
    })
    .await;
    let refused = client.connect(picky.local_addr()).await;
    let expected = ConnectFailure::IncompatibleProtocol { server: 10 };
    assert_eq!(refused.err(), Some(ConnectError::Failed(expected)));

    let small = server(|options| options.config.max_incoming = 1).await;
    let _first = client.connect(small.local_addr()).await.expect("a connection");
    let again = client.connect(small.local_addr()).await;
    assert_eq!(again.err(), Some(ConnectError::AlreadyConnected));
    let second = self::client(impatient).await.connect(small.local_addr()).await;
    assert_eq!(second.err().map(|error| error.to_string()).as_deref(), Some("the server is full"));

    let taken = Endpoint::bind(small.local_addr(), Options::client().expect("entropy")).await;
    assert!(matches!(taken, Err(BindError::Socket { .. })));
    let nowhere = Endpoint::bind("no port", Options::client().expect("entropy")).await;
    assert!(matches!(nowhere, Err(BindError::Resolve(_))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_attempt_ends() {
    let silent = UdpSocket::bind(LOCAL).expect("a free port");
    let client = client(|_| {}).await;
    let address = silent.local_addr().expect("a bound socket");
    let given_up = tokio::time::timeout(Duration::from_millis(20), client.connect(address)).await;
    assert!(given_up.is_err());
    until("nothing is left of the attempt", || client.stats().connections == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closing_ends_everything_in_order() {
    let (server, client) = (Arc::new(server(|_| {}).await), client(|_| {}).await);
    let address = server.local_addr();
    let (here, there) = join(&client, &server).await;
    // One that nobody accepts ends, too.
    let unaccepted = self::client(|_| {}).await;
    let waiting = unaccepted.connect(address).await.expect("a connection");
    there.send(&message(300_000, 0), Delivery::RELIABLE_ORDERED).await.expect("an open connection");

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
    assert_eq!(there.closed_reason(), Some(DisconnectReason::Local));
    assert!(matches!(server.connect(client.local_addr()).await, Err(ConnectError::EndpointClosed)));
    assert_eq!(server.ping(client.local_addr(), PATIENCE).await, Err(PingError::EndpointClosed));
    server.close().await;
    // The address is free again.
    Endpoint::bind(address, Options::client().expect("entropy")).await.expect("the address is free");

    assert_eq!(receive(&here).await.bytes, message(300_000, 0));
    assert!(here.recv().await.is_none());
    assert!(waiting.recv().await.is_none());
    assert_eq!(waiting.closed_reason(), Some(DisconnectReason::Remote));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_finds_no_place_to_wait_is_turned_away() {
    let server = server(|options| options.backlog = 1).await;
    let (one, two) = (client(|_| {}).await, client(|_| {}).await);
    let first = one.connect(server.local_addr()).await.expect("a connection");
    until("the first waits", || server.stats().connections == 1).await;
    if let Ok(second) = two.connect(server.local_addr()).await {
        assert!(second.recv().await.is_none());
    }
    assert_eq!(server.stats().backlog_full, 1);
    let there = server.accept().await.expect("the first");
    first.send(&message(10, 0), Delivery::RELIABLE).await.expect("an open connection");
    receive(&there).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nonsense_is_counted_and_harms_nobody() {
    let server = echo_all(server(|_| {}).await);
    let client = client(|_| {}).await;
    let connection = client.connect(server.local_addr()).await.expect("a connection");
    let stranger = UdpSocket::bind(LOCAL).expect("a free port");
    let send = |bytes: &[u8]| stranger.send_to(bytes, server.local_addr()).expect("loopback takes it");
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
async fn a_receipt_tells_that_a_message_arrived() {
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

/// Both sides learn how far a large message has come, in steps that only grow, up to its last part.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_message_tells_both_sides_how_far_it_is() {
    const PARTS: u32 = 200;
    let server = server(|options| options.config.progress_interval = 20).await;
    let client = client(|options| options.config.progress_interval = 10).await;
    let (here, there) = join(&client, &server).await;
    // Parts have 1,432 bytes at the largest MTU.
    let large = message(1_432 * 200, 0);
    here.send(&large, Delivery::RELIABLE).await.expect("an open connection");
    assert_eq!(receive(&there).await.bytes, large);
    for (connection, direction, step) in [(&there, Direction::Receiving, 20), (&here, Direction::Sending, 10)]
    {
        let mut before = 0;
        while before < PARTS {
            let news = tokio::time::timeout(PATIENCE, connection.recv_progress()).await;
            let Progress { direction: told, message, done, parts } =
                news.expect("news in time").expect("an open connection");
            assert_eq!((told, message, parts, done % step), (direction, 0, PARTS, 0));
            assert!(done > before, "{done} after {before}");
            before = done;
        }
        assert_eq!(before, PARTS);
    }
    here.disconnect().await;
    assert_eq!(here.recv_progress().await, None);
}

/// What is RakNet's own is refused by name, and everything else arrives, whatever its first byte.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_door_refuses_the_ids_of_raknet() {
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
