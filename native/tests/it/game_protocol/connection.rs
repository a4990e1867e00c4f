//! The Game Protocol over real sockets of this machine.

use std::net::SocketAddr;
use std::time::Duration;

use rakwire::Instant;
use rakwire_native::game::{
    self, ConnectError, ConnectFailure, Connection, DialError, DisconnectReason, Endpoint, Hook, Options,
    Redial, Reliability, Resend, SendError, Verdict,
};

async fn pair(change: impl Fn(&mut Options)) -> (Endpoint, Connection, Connection) {
    let mut options = Options::server(8).expect("random bytes");
    change(&mut options);
    let server = Endpoint::bind("127.0.0.1:0", options).await.expect("it works over loopback");
    let mut options = Options::client().expect("random bytes");
    change(&mut options);
    let here = game::connect(server.local_addr(), options).await.expect("it works over loopback");
    let there = server.accept().await.expect("it works over loopback");
    (server, here, there)
}

#[tokio::test]
async fn messages_of_all_sizes_go_both_ways() {
    let (_server, here, there) = pair(|_| {}).await;
    for length in [1, 504, 505, 50_000, 129_024] {
        let bytes: Vec<u8> = (0..length).map(|index| (index % 251) as u8).collect();
        here.send(&bytes, Reliability::Reliable).await.unwrap();
        let message = there.recv().await.unwrap();
        assert!(message.bytes == bytes && message.reliability == Reliability::Reliable);
        there.send(&bytes, Reliability::Reliable).await.unwrap();
        assert!(here.recv().await.unwrap().bytes == bytes);
    }
    here.send(b"maybe", Reliability::Unreliable).await.unwrap();
    assert_eq!(there.recv().await.unwrap().reliability, Reliability::Unreliable);
    assert_eq!(here.send(&[], Reliability::Reliable).await, Err(SendError::Empty));
    assert_eq!(here.send(&[0; 129_025], Reliability::Reliable).await, Err(SendError::TooLong));
    assert_eq!(here.stats().unwrap().messages_sent, 6);
}

#[tokio::test]
async fn everything_reliable_arrives_over_a_bad_network() {
    let (_server, here, there) = pair(|options| {
        options.config.redial = Redial::SamePort(Duration::from_millis(50));
        options.config.handshake_timeout = Duration::from_secs(10);
        options.config.resend = Resend::ROUND_TRIP;
        options.simulate = Some("loss=20%,latency=2ms,duplicate=10%".parse().unwrap());
    })
    .await;
    for number in 0..300_u32 {
        here.send(&number.to_be_bytes(), Reliability::Reliable).await.unwrap();
    }
    let mut arrived = Vec::new();
    while arrived.len() < 300 {
        let bytes = there.recv().await.unwrap().bytes;
        arrived.push(u32::from_be_bytes(bytes.try_into().unwrap()));
    }
    arrived.sort_unstable();
    assert!(arrived.into_iter().eq(0..300));
}

#[tokio::test]
async fn the_last_message_comes_before_the_end() {
    let (_server, here, there) = pair(|_| {}).await;
    there.send(b"game over", Reliability::Reliable).await.unwrap();
    there.disconnect().await;
    assert_eq!(there.closed_reason(), Some(DisconnectReason::Local));
    assert_eq!(here.recv().await.unwrap().bytes, b"game over");
    assert!(here.recv().await.is_none());
    assert_eq!(here.closed_reason(), Some(DisconnectReason::Remote));
    assert_eq!(here.send(b"too late", Reliability::Reliable).await, Err(SendError::NotConnected));
}

#[tokio::test]
async fn many_clients_share_an_endpoint_which_ends_them_all() {
    let server = Endpoint::bind("127.0.0.1:0", Options::server(20).unwrap()).await.unwrap();
    let mut clients = Vec::new();
    for _ in 0..20 {
        let here = game::connect(server.local_addr(), Options::client().unwrap()).await.unwrap();
        clients.push((here, server.accept().await.unwrap()));
    }
    for (number, (here, there)) in (0..).zip(&clients) {
        here.send(&[number], Reliability::Reliable).await.unwrap();
        assert_eq!(there.recv().await.unwrap().bytes, [number]);
    }
    server.close().await;
    for (here, _) in &clients {
        assert!(here.recv().await.is_none());
    }
    assert!(server.accept().await.is_none());
    let again = Endpoint::bind(server.local_addr(), Options::server(1).unwrap()).await.unwrap();
    assert!(matches!(server.connect(again.local_addr()).await, Err(ConnectError::EndpointClosed)));
}

/// Each attempt comes from another port, as an original server needs it.
#[tokio::test]
async fn a_silent_server_is_asked_from_a_fresh_port_each_time() {
    let silent = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = silent.local_addr().unwrap();
    let mut options = Options::client().unwrap();
    options.attempts = 3;
    options.config.handshake_timeout = Duration::from_millis(50);
    let failure = game::connect(address, options).await.err();
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
async fn an_application_that_does_not_read_loses_nothing_reliable() {
    let (server, here, there) = pair(|options| options.receive_queue = 10_000).await;
    for number in 0..300_u16 {
        let message = [&number.to_be_bytes()[..], &[0; 200]].concat();
        here.send(&message, Reliability::Reliable).await.unwrap();
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    let mut arrived = Vec::new();
    while arrived.len() < 300 {
        let bytes = there.recv().await.unwrap().bytes;
        arrived.push(u16::from_be_bytes([bytes[0], bytes[1]]));
    }
    arrived.sort_unstable();
    assert!(arrived.into_iter().eq(0..300));
    assert!(server.stats().datagrams_received >= 300);
}

/// Drops the first chunk of everything that arrives, once.
#[derive(Default)]
struct Gap(bool);

impl Hook for Gap {
    fn on_received(&mut self, _now: Instant, _from: SocketAddr, datagram: &[u8]) -> Verdict {
        let is_data = datagram.len() > 4;
        if is_data && !std::mem::replace(&mut self.0, true) { Verdict::Drop } else { Verdict::Pass }
    }
}

#[tokio::test]
async fn a_hook_sees_every_datagram_and_may_drop_it() {
    let options = Options::server(1).unwrap();
    let server = Endpoint::bind_with_hook("127.0.0.1:0", options, |_| Gap::default()).await.unwrap();
    let here = game::connect(server.local_addr(), Options::client().unwrap()).await.unwrap();
    let there = server.accept().await.unwrap();
    here.send(b"again", Reliability::Reliable).await.unwrap();
    assert_eq!(there.recv().await.unwrap().bytes, b"again");
    assert!(here.stats().unwrap().chunks_resent > 0);
}
