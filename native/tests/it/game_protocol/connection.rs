//! Features that only Game Protocol clients have.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use rakwire_native::game_protocol::{
    self, Attempts, ConnectError, ConnectFailure, DialError, Endpoint, Options, Redial, Reliability,
};

use crate::endpoint::subject::silent_socket;
use crate::support::DEADLINE;

/// Returns the datagrams in the socket's receive buffer, with their senders.
fn asked(socket: &UdpSocket) -> Vec<(SocketAddr, [u8; 4])> {
    socket.set_nonblocking(true).expect("a socket");
    let mut asked = Vec::new();
    let mut buffer = [0; 16];
    while let Ok((length, from)) = socket.recv_from(&mut buffer) {
        asked.push((from, buffer[..length].try_into().expect("a salt alone")));
    }
    asked
}

fn is_no_answer(failure: &DialError) -> bool {
    matches!(failure, DialError::Connect(ConnectError::Failed(ConnectFailure::NoAnswer)))
}

/// The original game server ignores a client that retries from the same port.
#[tokio::test]
async fn each_attempt_uses_a_fresh_port_if_the_server_is_silent() {
    for timeout in [50, 1_000, 10_000].map(Duration::from_millis) {
        let (silent, address) = silent_socket();
        let attempts = Attempts { max: 3, timeout };
        let failure = game_protocol::connect_with(address, Options::client().unwrap(), attempts).await.err();
        assert!(failure.is_some_and(|failure| is_no_answer(&failure)));
        let asked = asked(&silent);
        let (mut ports, mut salts): (Vec<_>, Vec<_>) = asked.iter().copied().unzip();
        ports.sort_unstable();
        ports.dedup();
        salts.sort_unstable();
        salts.dedup();
        assert_eq!((ports.len(), salts.len()), (asked.len(), asked.len()));
        assert!(asked.len() <= 3);
        // On a busy machine an attempt may time out before it has sent a datagram.
        if asked.len() == 3 {
            return;
        }
    }
    panic!("there were fewer than three attempts");
}

#[tokio::test]
async fn a_connection_keeps_the_socket_that_opened_it() {
    let server = Endpoint::bind("127.0.0.1:0", Options::server(1).unwrap()).await.unwrap();
    let attempts = Attempts { max: 1, timeout: DEADLINE };
    let options = Options::client().unwrap();
    let here = game_protocol::connect_with(server.local_addr(), options, attempts).await.unwrap();
    let there = server.accept().await.unwrap();
    here.send(b"hello", Reliability::Reliable).await.unwrap();
    assert_eq!(there.recv().await.unwrap().bytes, b"hello");
}

/// With a fixed port there is a single attempt, with the timeout of the configuration.
#[tokio::test]
async fn a_client_that_retries_uses_one_port() {
    for handshake_timeout in [100, 1_000, 10_000].map(Duration::from_millis) {
        let (silent, address) = silent_socket();
        let mut options = Options::client().unwrap();
        options.config.redial = Redial::SamePort(Duration::from_millis(20));
        options.config.handshake_timeout = handshake_timeout;
        let failure = game_protocol::connect(address, options).await.err();
        assert!(failure.is_some_and(|failure| is_no_answer(&failure)));
        let asked = asked(&silent);
        assert!(asked.windows(2).all(|two| two[0].0 == two[1].0), "{asked:?}");
        // On a busy machine the attempt may time out before the first retry.
        if asked.len() > 1 {
            return;
        }
    }
    panic!("nothing was repeated");
}
