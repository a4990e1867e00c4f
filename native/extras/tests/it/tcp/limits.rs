//! Limits of queues and slots, and timeouts.

use std::net::SocketAddr;
use std::time::Duration;

use rakwire_extras::tcp::{
    ConnectError, ConnectFailure, ConnectOptions, DisconnectReason, Options, SendError, TryAcceptError,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{ORDERED, Pair, endpoint, soon, with_socket};
use crate::support::until;

/// Options with the shortest queues that hold a message of 10,000 bytes.
fn short_queues() -> Options {
    let mut options = Options::server(1);
    options.max_message = 10_000;
    options.send_queue = 0;
    options.receive_queue = 0;
    options
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_does_not_read_blocks_the_sender() {
    let Pair { here, there, .. } = Pair::open(&short_queues()).await;
    let message = [7; 10_000];
    let (mut sent, mut quiet) = (0_u64, 0);
    // Send until the queues on both sides and the buffers of the system are full and stay full.
    loop {
        match here.try_send(&message, ORDERED) {
            Ok(_) => sent += 1,
            Err(SendError::QuotaExceeded) => {
                let waiting = tokio::time::timeout(Duration::from_millis(500), here.send(&message, ORDERED));
                match waiting.await {
                    Ok(result) => result.expect("open"),
                    // The writing task may have been suspended; wait for several quiet intervals.
                    Err(_) if quiet == 10 => break,
                    Err(_) => {
                        quiet += 1;
                        continue;
                    }
                };
                (sent, quiet) = (sent + 1, 0);
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert!(there.stats().messages_received < sent);
    let receive = async {
        for _ in 0..sent {
            assert_eq!(there.recv().await.expect("open").bytes, message);
        }
    };
    soon(receive).await;
    // The message of the dropped send future was not sent.
    here.send(b"last", ORDERED).await.expect("open");
    assert_eq!(soon(there.recv()).await.expect("open").bytes, b"last");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_never_reads_times_out() {
    let mut options = short_queues();
    options.timeout = Duration::from_secs(2);
    let (_server, connection, socket) = with_socket(options).await;
    let flood = async { while connection.send(&[7; 10_000], ORDERED).await.is_ok() {} };
    soon(flood).await;
    assert_eq!(soon(connection.closed()).await, DisconnectReason::TimedOut);
    drop(socket);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closing_is_bounded_by_the_close_timeout() {
    let mut options = Options::server(1);
    options.close_timeout = Duration::from_millis(300);
    let (_server, connection, mut socket) = with_socket(options).await;
    connection.send(b"\x86", ORDERED).await.expect("open");
    // The peer never closes its side.
    soon(connection.disconnect()).await;
    assert_eq!(connection.closed_reason(), Some(DisconnectReason::Local));
    let mut bytes = Vec::new();
    soon(socket.read_to_end(&mut bytes)).await.expect("closed in order");
    assert_eq!(bytes, [0, 0, 0, 1, 0x86]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_that_never_fit_are_refused() {
    let Pair { here, there, .. } = Pair::open(&short_queues()).await;
    assert_eq!(here.send(&[], ORDERED).await, Err(SendError::Empty));
    assert_eq!(here.send(&[7; 10_001], ORDERED).await, Err(SendError::NeverFits));
    here.send(&[7; 10_000], ORDERED).await.expect("enough space");
    assert_eq!(soon(there.recv()).await.expect("open").bytes, [7; 10_000]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn incoming_connections_are_limited_and_their_slots_reused() {
    let server = endpoint(Options::server(2)).await;
    let client = endpoint(Options::client()).await;
    let address = server.local_addr();
    let first = client.connect(address).await.expect("open");
    let second = client.connect(address).await.expect("open");
    let third = client.connect(address).await.expect("open until the server sees it");
    soon(third.closed()).await;
    assert_eq!((server.stats().incoming, server.stats().refused), (2, 1));
    // A closed connection keeps its slot until the application has accepted it.
    first.disconnect().await;
    let accepted = soon(server.accept()).await.expect("open");
    soon(accepted.closed()).await;
    drop(accepted);
    until("a slot is free", || server.stats().incoming != 2).await;
    let fourth = client.connect(address).await.expect("open");
    fourth.send(b"here", ORDERED).await.expect("open");
    for _ in [&second, &fourth] {
        soon(server.accept()).await.expect("open");
    }
    assert_eq!(server.try_accept().err(), Some(TryAcceptError::Empty));
}

/// The time limit for the first message does not apply once the server has sent the client a message.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_without_a_message_loses_its_slot() {
    let mut options = Options::server(5);
    options.first_message_timeout = Duration::from_secs(5);
    let (server, listening, mut greeted) = with_socket(options).await;
    listening.send(b"welcome", ORDERED).await.expect("open");
    let mut welcome = [0; 11];
    soon(greeted.read_exact(&mut welcome)).await.expect("open");
    let address = server.local_addr();
    let mut talking = TcpStream::connect(address).await.expect("open");
    talking.write_all(&[0, 0, 0, 1, 0x86]).await.expect("open");
    let talked = soon(server.accept()).await.expect("open");
    assert_eq!(soon(talked.recv()).await.expect("open").bytes, [0x86]);
    let mut others = Vec::new();
    for part in [&[][..], &[0, 0], &[0, 0, 0, 2, b'h']] {
        let mut silent = TcpStream::connect(address).await.expect("open");
        silent.write_all(part).await.expect("open");
        others.push((silent, soon(server.accept()).await.expect("open")));
    }
    for (mut silent, accepted) in others {
        assert_eq!(soon(accepted.closed()).await, DisconnectReason::NoFirstMessage);
        // Whether the system resets the connection because of unread bytes is not tested here.
        let _ = soon(silent.read_to_end(&mut Vec::new())).await;
    }
    // The time limits of the first clients expired earlier.
    assert_eq!((listening.closed_reason(), talked.closed_reason()), (None, None));
    talked.send(b"still here", ORDERED).await.expect("open");
    until("the slots are free", || server.stats().incoming == 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tcp_connect_errors_name_the_cause() {
    let client = endpoint(Options::client()).await;
    for unassigned in ["0.0.0.0:80", "127.0.0.1:0"] {
        let address: SocketAddr = unassigned.parse().expect("an address");
        assert_eq!(client.connect(address).await.err(), Some(ConnectError::UnassignedAddress));
    }
    // A listener with a full backlog answers no connection request.
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("a socket");
    let any: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    socket.bind(&any.into()).expect("a free port");
    socket.listen(0).expect("a bound socket");
    let address = socket.local_addr().expect("bound").as_socket().expect("an address");
    let mut options = ConnectOptions::default();
    options.connect_timeout = Some(Duration::from_millis(500));
    let mut kept = Vec::new();
    let failure = loop {
        match client.connect_with(address, &options).await {
            Ok(connection) => kept.push(connection),
            Err(failure) => break failure,
        }
    };
    assert_eq!(failure, ConnectError::Failed(ConnectFailure::NoAnswer));
}
