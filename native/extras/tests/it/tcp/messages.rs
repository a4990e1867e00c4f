//! Messages over TCP arrive complete and in order in both directions, through the same methods as over UDP.

use rakwire_extras::tcp::{self, DisconnectReason, Framing, Options, SendError};
use rakwire_native::endpoint::TryRecvError;
use rakwire_native::{Delivery, raknet};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{ORDERED, Pair, soon, with_socket};
use crate::support::until;

/// Lengths around the sizes of buffers and length fields.
const LENGTHS: [usize; 12] = [1, 2, 3, 255, 256, 16_380, 16_384, 65_535, 65_536, 65_537, 200_000, 1 << 20];

fn message(number: usize) -> Vec<u8> {
    let len = LENGTHS[number % LENGTHS.len()];
    (0..len).map(|i| (31 * number + 7 * i + i / 251) as u8).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_arrive_complete_and_in_order_in_both_directions() {
    let Pair { here, there, .. } = Pair::open(&Options::server(1)).await;
    const COUNT: usize = 60;
    let send = |connection: tcp::Connection| async move {
        for number in 0..COUNT {
            connection.send(&message(number), ORDERED).await.expect("open");
        }
    };
    let receive = |connection: tcp::Connection| async move {
        for number in 0..COUNT {
            let received = connection.recv().await.expect("open");
            assert_eq!(received.delivery, ORDERED);
            assert!(received.bytes == message(number), "message {number}");
        }
    };
    let pass = async {
        tokio::join!(send(here.clone()), send(there.clone()), receive(here.clone()), receive(there.clone()));
    };
    soon(pass).await;
    let bytes = (0..COUNT).map(|number| message(number).len() as u64).sum();
    for end in [&here, &there] {
        until("all messages are counted", || end.stats().messages_sent == COUNT as u64).await;
        let stats = end.stats();
        assert_eq!((stats.messages_received, stats.bytes_received), (COUNT as u64, bytes));
        assert_eq!(stats.bytes_sent, bytes);
    }
}

/// Sends and receives with the same code over both transports.
macro_rules! round_trip {
    ($name:ident, $connection:ty) => {
        async fn $name(here: &$connection, there: &$connection) -> Result<(), SendError> {
            here.send(b"\x86to you", Delivery::RELIABLE_ORDERED).await?;
            let message = there.recv().await.expect("open");
            there.try_send(&message.bytes, message.delivery)?;
            assert_eq!(here.recv().await.expect("open").bytes, b"\x86to you");
            assert_eq!(here.try_recv().err(), Some(TryRecvError::Empty));
            here.disconnect().await;
            there.closed().await;
            assert!(here.closed_reason().is_some() && there.recv().await.is_none());
            assert_eq!(here.send(b"\x86", Delivery::RELIABLE).await, Err(SendError::NotConnected));
            Ok(())
        }
    };
}
round_trip!(round_trip_over_udp, raknet::Connection);
round_trip!(round_trip_over_tcp, tcp::Connection);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_code_runs_over_udp_and_tcp() {
    let Pair { here, there, .. } = Pair::open(&Options::server(1)).await;
    soon(round_trip_over_tcp(&here, &there)).await.expect("sent");
    let server = raknet::Endpoint::bind("127.0.0.1:0", raknet::Options::server(1).expect("entropy")).await;
    let client = raknet::Endpoint::bind("127.0.0.1:0", raknet::Options::client().expect("entropy")).await;
    let (server, client) = (server.expect("a free port"), client.expect("a free port"));
    let here = client.connect(server.local_addr()).await.expect("open");
    let there = server.accept().await.expect("open");
    soon(round_trip_over_udp(&here, &there)).await.expect("sent");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sent_messages_arrive_before_the_disconnect() {
    let Pair { here, there, .. } = Pair::open(&Options::server(1)).await;
    for number in 0..100_u8 {
        here.send(&[number; 5_000], ORDERED).await.expect("open");
    }
    let receive = async {
        for number in 0..100_u8 {
            assert_eq!(there.recv().await.expect("open").bytes, [number; 5_000]);
        }
        assert!(there.recv().await.is_none());
    };
    soon(async { tokio::join!(here.disconnect(), receive) }).await;
    assert_eq!(here.closed_reason(), Some(DisconnectReason::Local));
    assert_eq!(there.closed_reason(), Some(DisconnectReason::Remote));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropping_the_last_handle_closes_the_connection() {
    let Pair { here, there, client, .. } = Pair::open(&Options::server(1)).await;
    let other = here.clone();
    drop((here, client));
    other.send(b"still open", ORDERED).await.expect("open");
    drop(other);
    assert_eq!(soon(there.recv()).await.expect("sent before").bytes, b"still open");
    assert_eq!(soon(there.closed()).await, DisconnectReason::Remote);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_endpoint_closes_its_connections() {
    let Pair { here, there, client, server } = Pair::open(&Options::server(1)).await;
    let address = server.local_addr();
    there.send(b"bye", ORDERED).await.expect("open");
    soon(server.close()).await;
    assert_eq!(there.closed_reason(), Some(DisconnectReason::Local));
    assert_eq!(soon(here.recv()).await.expect("sent before").bytes, b"bye");
    assert_eq!(soon(here.closed()).await, DisconnectReason::Remote);
    assert!(server.accept().await.is_none());
    assert_eq!(server.try_accept().err(), Some(tcp::TryAcceptError::Closed));
    let failure = client.connect(address).await.err();
    assert!(
        matches!(failure, Some(tcp::ConnectError::Failed(tcp::ConnectFailure::Socket(_)))),
        "{failure:?}"
    );
    client.close().await;
    assert_eq!(client.connect(address).await.err(), Some(tcp::ConnectError::EndpointClosed));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unframed_stream_carries_plain_bytes_in_both_directions() {
    let mut options = Options::server(1);
    options.framing = Framing::Stream;
    let (_server, connection, mut socket) = with_socket(options).await;
    connection.send(b"220 ready\r\n", ORDERED).await.expect("open");
    let mut line = [0; 11];
    soon(socket.read_exact(&mut line)).await.expect("the greeting");
    assert_eq!(&line, b"220 ready\r\n");
    let text = vec![b'x'; 100_000];
    let (written, received) = soon(async {
        tokio::join!(
            async {
                socket.write_all(&text).await?;
                socket.shutdown().await
            },
            async {
                let mut received = Vec::new();
                while let Some(message) = connection.recv().await {
                    assert!((1..=16 << 10).contains(&message.bytes.len()));
                    received.extend(message.bytes);
                }
                received
            }
        )
    })
    .await;
    written.expect("open");
    assert!(received == text);
    assert_eq!(connection.closed_reason(), Some(DisconnectReason::Remote));
}

/// Connections that are closed, full or excluded do not receive the message.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broadcast_reaches_all_open_connections_but_one() {
    let server = tcp::Endpoint::bind("127.0.0.1:0", Options::server(4)).await.expect("a free port");
    let client = tcp::Endpoint::bind("127.0.0.1:0", Options::client()).await.expect("an address");
    let mut pairs = Vec::new();
    for _ in 0..3 {
        let here = soon(client.connect(server.local_addr())).await.expect("a server");
        pairs.push((here, soon(server.accept()).await.expect("a connection")));
    }
    let (ended, there) = pairs.swap_remove(2);
    soon(ended.disconnect()).await;
    soon(there.closed()).await;
    let all = server.broadcast(b"all", ORDERED);
    assert_eq!((all.sent, all.refused.len()), (2, 0));
    let others = server.broadcast_except(&pairs[0].1, b"others", ORDERED);
    assert_eq!((others.sent, server.broadcast(b"", ORDERED).refused.len()), (1, 2));
    for (connection, expected) in
        [(&pairs[0].0, &[b"all".as_slice()][..]), (&pairs[1].0, &[b"all", b"others"])]
    {
        for message in expected {
            assert_eq!(soon(connection.recv()).await.expect("open").bytes, *message);
        }
    }
    assert_eq!(pairs[0].0.try_recv().err(), Some(TryRecvError::Empty));
}
