//! The example `either`: its client falls back to TCP if UDP does not get through.

use std::net::UdpSocket;

use rakwire_extras::tcp;
use rakwire_native::{Delivery, raknet};

use self::either::Connection;
use super::{endpoint, soon};

#[path = "../../../examples/either.rs"]
#[expect(dead_code, reason = "the test has no command line")]
mod either;

/// Binds a server over TCP. The UDP socket on the same port never answers.
async fn without_udp() -> (UdpSocket, tcp::Endpoint) {
    loop {
        let over_tcp = endpoint(tcp::Options::server(1)).await;
        // Another test may use the UDP port; try again with another one.
        if let Ok(silent) = UdpSocket::bind(over_tcp.local_addr()) {
            return (silent, over_tcp);
        }
    }
}

async fn is_echoed(connection: &Connection) {
    connection.send(b"\x86hello", Delivery::RELIABLE_ORDERED).await.expect("open");
    assert_eq!(connection.recv().await.expect("open").bytes, b"\x86hello");
    connection.disconnect().await;
}

#[tokio::test]
async fn a_client_falls_back_to_tcp_without_udp() {
    let options = raknet::Options::server(1).expect("entropy");
    let over_udp = raknet::Endpoint::bind("127.0.0.1:0", options).await.expect("a free port");
    let (_silent, over_tcp) = without_udp().await;
    let (udp, tcp) = (over_udp.local_addr(), over_tcp.local_addr());
    let client = async {
        let connection = either::connect(udp).await.expect("a free slot");
        assert!(matches!(connection, Connection::Udp(_)));
        is_echoed(&connection).await;
        let connection = either::connect(tcp).await.expect("a free slot");
        assert!(matches!(connection, Connection::Tcp(_)));
        is_echoed(&connection).await;
    };
    soon(async {
        tokio::select! {
            ended = either::serve(over_udp, over_tcp) => panic!("the server stopped: {ended:?}"),
            () = client => {}
        }
    })
    .await;
}
