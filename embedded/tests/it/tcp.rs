//! Connections over TCP between machines.

use std::net::SocketAddr;

use embassy_net::Stack;
use embassy_net::tcp::TcpSocket;
use rakwire::endpoint::SendError;
use rakwire::raknet::Delivery;
use rakwire_embassy::tcp::{AcceptError, ConnectError, Connection, DisconnectReason, Memory};

use crate::support::{Net, PORT, Wire, give_up, message, run};

const ORDERED: Delivery = Delivery::RELIABLE_ORDERED;
/// The maximum length of a message.
const ROOM: usize = 2_000;

fn memory() -> &'static mut Memory<1_024, 512, ROOM> {
    Box::leak(Box::new(Memory::new()))
}

/// Creates two machines, and returns the address of the second one.
fn machines(wire: Wire) -> (Stack<'static>, Stack<'static>, SocketAddr) {
    let mut net = Net::new(wire);
    let ((here, _), (there, address)) = (net.machine_without_peer(), net.machine_without_peer());
    (here, there, (address, PORT).into())
}

async fn connected(wire: Wire) -> (Connection<'static>, Connection<'static>) {
    let (here, there, address) = machines(wire);
    let (connect, accept) =
        (Connection::connect(here, memory(), address), Connection::accept(there, memory(), PORT));
    let (here, there) = tokio::join!(connect, accept);
    (here.expect("an open connection"), there.expect("an open connection"))
}

/// Opens a connection to a plain socket.
async fn with_socket() -> (TcpSocket<'static>, Connection<'static>) {
    let (here, there, address) = machines(Wire::losing(0));
    let (receive, send) = (Box::leak(Box::new([0; 1_024])), Box::leak(Box::new([0; 1_024])));
    let mut socket = TcpSocket::new(here, receive, send);
    let SocketAddr::V4(address) = address else { unreachable!("machines have IPv4") };
    let connect = async {
        socket.connect((*address.ip(), address.port())).await.expect("an open connection");
        socket
    };
    let (socket, connection) = tokio::join!(connect, Connection::accept(there, memory(), PORT));
    (socket, connection.expect("an open connection"))
}

async fn exchange(wire: Wire) {
    let (mut here, mut there) = connected(wire).await;
    let lengths = [5, 6, 511, 512, 513, 1_024, ROOM];
    async fn pass(connection: &mut Connection<'static>, lengths: &[usize]) {
        let (mut sender, mut receiver) = connection.split();
        let send = async {
            for (number, len) in (0..).zip(lengths) {
                sender.send(&message(number, *len), ORDERED).await.expect("an open connection");
            }
        };
        let receive = async {
            for (number, len) in (0..).zip(lengths) {
                assert_eq!(receiver.recv().await, Some(&message(number, *len)[..]));
            }
        };
        tokio::join!(send, receive);
    }
    tokio::join!(pass(&mut here, &lengths), pass(&mut there, &lengths));
    here.send(b"last", ORDERED).await.expect("an open connection");
    let end = async {
        assert_eq!(there.recv().await, Some(&b"last"[..]));
        assert_eq!(there.recv().await, None);
        there.disconnect().await;
    };
    tokio::join!(here.disconnect(), end);
    assert_eq!(here.closed_reason(), Some(DisconnectReason::Local));
    assert_eq!(there.closed_reason(), Some(DisconnectReason::Remote));
    assert_eq!(here.send(b"late", ORDERED).await, Err(SendError::NotConnected));
    assert_eq!(here.recv().await, None);
}

#[test]
fn messages_sent_before_the_disconnect_arrive_in_both_directions() {
    run(exchange(Wire::losing(0)));
}

#[test]
fn messages_arrive_over_a_lossy_path() {
    run(exchange(Wire::losing(5)));
}

#[test]
fn connect_and_accept_errors_name_the_cause() {
    run(async {
        let (here, there, address) = machines(Wire::losing(0));
        let refused = Connection::connect(here, memory(), address).await;
        assert_eq!(refused.err(), Some(ConnectError::Refused));
        let failed = Connection::connect(here, memory(), (address.ip(), 0).into()).await;
        assert_eq!(failed.err(), Some(ConnectError::NoRoute));
        let family =
            Connection::connect(here, memory(), "[2001:db8::1]:7".parse().expect("an address")).await;
        assert_eq!(family.err(), Some(ConnectError::NoRoute));
        let port = Connection::accept(there, memory(), 0).await;
        assert_eq!(port.err(), Some(AcceptError::InvalidPort));
    });
}

async fn write_all(socket: &mut TcpSocket<'_>, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        let written = socket.write(bytes).await.expect("an open connection");
        bytes = &bytes[written..];
    }
}

#[test]
fn a_header_with_an_excessive_length_closes_the_tcp_connection() {
    run(async {
        let (mut socket, mut connection) = with_socket().await;
        write_all(&mut socket, &[0, 0, 0, 2, b'h', b'i', 0, 0, 0x07, 0xD1]).await;
        assert_eq!(connection.recv().await, Some(&b"hi"[..]));
        assert_eq!(connection.recv().await, None);
        assert_eq!(connection.closed_reason(), Some(DisconnectReason::MessageTooLong));
        assert_eq!(connection.send(b"late", ORDERED).await, Err(SendError::NotConnected));
    });
}

#[test]
fn a_stream_that_ends_within_a_message_is_reported_as_a_loss() {
    run(async {
        let (mut socket, mut connection) = with_socket().await;
        write_all(&mut socket, &[0, 0, 0, 9, b'h', b'i']).await;
        socket.close();
        assert_eq!(connection.recv().await, None);
        assert_eq!(connection.closed_reason(), Some(DisconnectReason::Lost));
    });
}

#[test]
fn a_tcp_reset_is_reported_as_a_loss() {
    run(async {
        let (mut socket, mut connection) = with_socket().await;
        socket.abort();
        assert_eq!(connection.recv().await, None);
        assert_eq!(connection.closed_reason(), Some(DisconnectReason::Lost));
    });
}

#[test]
fn a_cancelled_recv_loses_nothing() {
    run(async {
        let (mut socket, mut connection) = with_socket().await;
        for byte in [0, 0, 0, 3, 1, 2] {
            write_all(&mut socket, &[byte]).await;
            for _ in 0..20 {
                assert!(give_up(connection.recv()), "recv must wait for the last byte of the message");
                tokio::task::yield_now().await;
            }
        }
        write_all(&mut socket, &[3]).await;
        assert_eq!(connection.recv().await, Some(&[1, 2, 3][..]));
        assert!(give_up(connection.recv()), "recv must not return a message twice");
        write_all(&mut socket, &[0; 4]).await;
        assert_eq!(connection.recv().await, Some(&[][..]));
        socket.close();
        assert_eq!(connection.recv().await, None);
        assert_eq!(connection.closed_reason(), Some(DisconnectReason::Remote));
    });
}

#[test]
fn nothing_is_sent_after_a_partial_message() {
    run(async {
        let (socket, mut connection) = with_socket().await;
        assert_eq!(connection.send(&[], ORDERED).await, Err(SendError::Empty));
        // The message exceeds all buffers on the path, and the remote peer does not read.
        let long = vec![7; 10_000];
        let waits =
            tokio::time::timeout(std::time::Duration::from_millis(200), connection.send(&long, ORDERED));
        assert!(waits.await.is_err());
        assert_eq!(connection.send(b"behind", ORDERED).await, Err(SendError::NotConnected));
        drop(socket);
    });
}
