//! Data from broken or malicious peers.

use std::io::ErrorKind;

use rakwire_extras::tcp::{DisconnectReason, Options};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{ORDERED, soon, with_socket};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_header_with_an_excessive_length_closes_the_connection() {
    let options = Options::server(1);
    let claimed = options.max_message + 1;
    let (_server, connection, mut socket) = with_socket(options).await;
    let good = [0, 0, 0, 2, b'h', b'i'];
    socket.write_all(&[&good[..], &claimed.to_be_bytes()].concat()).await.expect("open");
    assert_eq!(soon(connection.recv()).await.expect("before the claim").bytes, b"hi");
    assert!(soon(connection.recv()).await.is_none());
    assert_eq!(connection.closed_reason(), Some(DisconnectReason::MessageTooLong(claimed)));
    let mut bytes = Vec::new();
    assert_eq!(soon(socket.read_to_end(&mut bytes)).await.expect("closed"), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_ends_within_a_message_is_reported_as_a_loss() {
    for written in 1..7 {
        let (_server, connection, mut socket) = with_socket(Options::server(1)).await;
        socket.write_all(&[0, 0x0F, 0xFF, 0xFF, b'h', b'i'][..written]).await.expect("open");
        drop(socket);
        assert!(soon(connection.recv()).await.is_none());
        assert_eq!(connection.closed_reason(), Some(DisconnectReason::Lost(ErrorKind::UnexpectedEof)));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_are_parsed_from_single_bytes_and_may_be_empty() {
    let (_server, connection, mut socket) = with_socket(Options::server(1)).await;
    for byte in [0, 0, 0, 0, 0, 0, 0, 3, 1, 2, 3, 0, 0, 0, 0] {
        socket.write_all(&[byte]).await.expect("open");
        tokio::task::yield_now().await;
    }
    socket.shutdown().await.expect("open");
    for expected in [&[][..], &[1, 2, 3], &[]] {
        assert_eq!(soon(connection.recv()).await.expect("open").bytes, expected);
    }
    assert!(soon(connection.recv()).await.is_none());
    assert_eq!(connection.closed_reason(), Some(DisconnectReason::Remote));
}

/// Each message is charged 64 bytes, so flow control stops a flood of empty messages like any other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_empty_messages_does_not_fill_the_memory() {
    let mut options = Options::server(1);
    options.receive_queue = 64 * 1_000;
    options.max_message = 1_000;
    let (_server, connection, mut socket) = with_socket(options).await;
    const COUNT: u64 = 2_000_000;
    let flood = tokio::spawn(async move {
        let batch = [0; 4_000];
        for _ in 0..COUNT / 1_000 {
            socket.write_all(&batch).await.expect("open");
        }
    });
    let receive = async {
        for read in 0..COUNT {
            assert!(
                connection.stats().messages_received <= read + 1_001,
                "more messages than the queue holds"
            );
            assert!(connection.recv().await.expect("open").bytes.is_empty());
        }
    };
    soon(receive).await;
    flood.await.expect("no panic");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tcp_reset_is_reported_as_a_loss() {
    let (_server, connection, socket) = with_socket(Options::server(1)).await;
    connection.send(b"unread", ORDERED).await.expect("open");
    socket.readable().await.expect("open");
    // The system resets a connection if its socket is closed with unread bytes.
    drop(socket);
    assert!(soon(connection.recv()).await.is_none());
    assert_eq!(connection.closed_reason(), Some(DisconnectReason::Lost(ErrorKind::ConnectionReset)));
}
