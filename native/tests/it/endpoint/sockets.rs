//! Sockets provided by the application, and sockets that are replaced.

use std::net::UdpSocket;

use rakwire_native::endpoint::{Endpoint, Options};

use super::by_both_protocols;
use super::subject::{Subject, client, echo_all, join, numbered, receive, receive_all, server};

by_both_protocols!(
    connections_survive_a_socket_at_the_same_address,
    an_endpoint_connects_from_its_new_socket,
    a_closed_endpoint_rejects_a_socket,
);

fn socket() -> UdpSocket {
    UdpSocket::bind("127.0.0.1:0").expect("a free port")
}

async fn connections_survive_a_socket_at_the_same_address<P: Subject>() {
    let (server, socket) = (server::<P>(|_| {}).await, socket());
    let client =
        Endpoint::<P>::from_std(socket.try_clone().expect("a copy"), Options::client().expect("entropy"))
            .expect("a bound socket");
    let (here, there) = join(&client, &server).await;
    let sending = here.clone();
    let sending = tokio::spawn(async move {
        for number in 0..200 {
            sending.send(&numbered(1_000, number), P::RELIABLE).await.expect("an open connection");
        }
    });
    for _ in 0..3 {
        client.rebind(socket.try_clone().expect("a copy")).expect("an open endpoint");
        client.flush().await;
    }
    assert_eq!(client.local_addr(), socket.local_addr().expect("a bound socket"));
    receive_all(&there, 1_000, 200).await;
    sending.await.expect("no panic");
    there.send(&numbered(10, 0), P::RELIABLE).await.expect("an open connection");
    assert_eq!(receive(&here).await.bytes, numbered(10, 0));
}

async fn an_endpoint_connects_from_its_new_socket<P: Subject>() {
    let (client, server) = (client::<P>(|_| {}).await, echo_all(server::<P>(|_| {}).await));
    let (before, socket) = (client.local_addr(), socket());
    let address = socket.local_addr().expect("a bound socket");
    client.rebind(socket).expect("an open endpoint");
    client.flush().await;
    assert_eq!(client.local_addr(), address);
    let connection = client.connect(server.local_addr()).await.expect("a connection");
    connection.send(&numbered(10, 0), P::RELIABLE).await.expect("an open connection");
    assert_eq!(receive(&connection).await.bytes, numbered(10, 0));
    // The old socket is closed, so its address is free.
    UdpSocket::bind(before).expect("the address is free");
}

async fn a_closed_endpoint_rejects_a_socket<P: Subject>() {
    let server = server::<P>(|_| {}).await;
    server.close().await;
    assert!(server.rebind(socket()).is_err());
}
