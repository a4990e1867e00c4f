//! What only clients of the Game Protocol do.

use std::net::SocketAddr;
use std::time::Duration;

use rakwire_native::game_protocol::{
    self, Attempts, ConnectError, ConnectFailure, DialError, Endpoint, Options, Redial, Reliability,
};

/// Each attempt comes from another port, as an original server needs it.
#[tokio::test]
async fn a_silent_server_is_asked_from_a_fresh_port_each_time() {
    let silent = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = silent.local_addr().unwrap();
    let attempts = Attempts { most: 3, timeout: Duration::from_millis(50) };
    let failure = game_protocol::connect_with(address, Options::client().unwrap(), attempts).await.err();
    assert!(matches!(failure, Some(DialError::Connect(ConnectError::Failed(ConnectFailure::NoAnswer)))));
    let mut asked: Vec<SocketAddr> = Vec::new();
    let mut salts = Vec::new();
    for _ in 0..3 {
        let mut buffer = [0; 16];
        let (length, from) = silent.recv_from(&mut buffer).await.unwrap();
        assert_eq!(length, 4);
        asked.push(from);
        salts.push(buffer);
    }
    assert!(silent.try_recv_from(&mut [0; 16]).is_err());
    asked.dedup();
    salts.dedup();
    assert_eq!((asked.len(), salts.len()), (3, 3));
}

#[tokio::test]
async fn a_connection_keeps_the_socket_from_which_it_was_opened() {
    let server = Endpoint::bind("127.0.0.1:0", Options::server(1).unwrap()).await.unwrap();
    let here = game_protocol::connect(server.local_addr(), Options::client().unwrap()).await.unwrap();
    let there = server.accept().await.unwrap();
    here.send(b"hello", Reliability::Reliable).await.unwrap();
    assert_eq!(there.recv().await.unwrap().bytes, b"hello");
}

/// There is one attempt from the same port, which takes the time of the configuration.
#[tokio::test]
async fn a_client_that_repeats_itself_tries_from_one_port() {
    let silent = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let mut options = Options::client().unwrap();
    options.config.redial = Redial::SamePort(Duration::from_millis(20));
    options.config.handshake_timeout = Duration::from_millis(100);
    let failure = game_protocol::connect(silent.local_addr().unwrap(), options).await.err();
    assert!(matches!(failure, Some(DialError::Connect(ConnectError::Failed(ConnectFailure::NoAnswer)))));
    let (_, first) = silent.recv_from(&mut [0; 16]).await.unwrap();
    let (_, second) = silent.recv_from(&mut [0; 16]).await.unwrap();
    assert_eq!(first, second);
}
