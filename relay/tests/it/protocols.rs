//! Targets with a known protocol: handshakes are required, and pings are answered from the cache.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rakwire::raknet::Guid;
use rakwire::wire::offline::{ClientSecurity, Offline, PingScope, ServerSecurity};
use rakwire::wire::{MAX_MTU, Reader, Wire, Writer};
use rakwire_relay::protocol::ProtocolKind;
use rakwire_relay::{DropReason, Relay};
use tokio::time::sleep;

use crate::support::{Client, Running, Server, config, game, within};

/// A connection datagram of RakNet.
const CONNECTED: [u8; 8] = [0x84, 0, 0, 0, 0, 0, 8, 0xFE];
const MTU: u16 = 1_200;
const CLIENT: Guid = Guid(7);
const SERVER: Guid = Guid(9);
const ADVERTISEMENT: &[u8] = b"MCPE;Snow world";

/// Starts a relay with a target of this protocol.
async fn relay(kind: ProtocolKind, server: &Server) -> Running {
    let mut config = config(server.address());
    game(&mut config).kind = kind;
    Running::start(config).await
}

fn bytes(message: &Offline<'_>) -> Vec<u8> {
    let mut buffer = [0; 2_048];
    let mut writer = Writer::new(&mut buffer);
    message.write(&mut writer).unwrap();
    writer.finish().to_vec()
}

fn offline(datagram: &[u8]) -> Option<Offline<'_>> {
    Offline::read(&mut Reader::new(datagram)).ok()
}

/// A server and a connected client, with the relay in between.
struct Flow {
    relay: Running,
    server: Server,
    client: Client,
    /// The client's address as the server sees it.
    from: SocketAddr,
}

impl Flow {
    /// Sends this datagram from the client. It must be the first one to arrive at the server.
    async fn begin(relay: Running, server: Server, mut client: Client, datagram: &[u8]) -> Self {
        client.send(datagram).await;
        let (first, from) = next(&server).await;
        assert_eq!(first, datagram);
        Self { relay, server, client, from }
    }

    /// Sends a datagram from the server. It must arrive at the client unchanged.
    async fn answer(&mut self, datagram: &[u8]) {
        self.server.send(datagram, self.from).await;
        assert_eq!(self.client.receive().await, datagram);
    }

    /// Sends a datagram from the client. It must be the next one to arrive at the server.
    async fn ask(&mut self, datagram: &[u8]) {
        self.client.send(datagram).await;
        assert_eq!(next(&self.server).await, (datagram.to_vec(), self.from));
    }

    fn drops(&self) -> u64 {
        self.relay.snapshot().drops(DropReason::NotHandshake)
    }
}

/// Returns the next datagram at the server that is not a ping of the relay itself.
async fn next(server: &Server) -> (Vec<u8>, SocketAddr) {
    loop {
        let (datagram, from) = server.receive().await;
        if !matches!(offline(&datagram), Some(Offline::Ping { .. })) {
            return (datagram, from);
        }
    }
}

#[tokio::test]
async fn raknet_datagrams_pass_once_the_server_accepts() {
    let server = Server::bind().await;
    let address = server.address();
    let relay = relay(ProtocolKind::RakNet, &server).await;
    let mut client = relay.client().await;
    client.send(&CONNECTED).await;
    let request_1 = bytes(&Offline::Request1 { protocol: 11, mtu: MTU });
    let mut flow = Flow::begin(relay, server, client, &request_1).await;
    assert_eq!(flow.drops(), 1);

    let reply_1 = bytes(&Offline::Reply1 { guid: SERVER, security: ServerSecurity::None, mtu: MTU });
    flow.answer(&reply_1).await;
    flow.client.send(&CONNECTED).await;
    let security = ClientSecurity::None;
    let request_2 = bytes(&Offline::Request2 { security, server: address, mtu: MTU, guid: CLIENT });
    flow.ask(&request_2).await;
    assert_eq!(flow.drops(), 2, "reply 1 does not accept the client");

    let reply_2 = bytes(&Offline::Reply2 { guid: SERVER, client: flow.from, mtu: MTU, answer: None });
    flow.answer(&reply_2).await;
    flow.ask(&CONNECTED).await;
    assert_eq!(flow.drops(), 2);
}

/// Some RakNet implementations do not subtract the IP and UDP headers from the MTU, and send UDP payloads of that
/// length.
#[tokio::test]
async fn client_datagrams_may_be_as_long_as_the_mtu() {
    let server = Server::bind().await;
    let relay = relay(ProtocolKind::RakNet, &server).await;
    let client = relay.client().await;
    let request_1 = bytes(&Offline::Request1 { protocol: 11, mtu: MAX_MTU });
    let mut flow = Flow::begin(relay, server, client, &request_1).await;
    let reply_2 = bytes(&Offline::Reply2 { guid: SERVER, client: flow.from, mtu: MAX_MTU, answer: None });
    flow.answer(&reply_2).await;
    for length in [1_473, 1_480, MAX_MTU.into()] {
        flow.ask(&vec![0x84; length]).await;
    }
    flow.client.send(&[0x84; MAX_MTU as usize + 1]).await;
    assert_eq!(flow.client.closed().await.0, 1009);
}

#[tokio::test]
async fn front_client_datagrams_may_be_as_long_as_the_mtu() {
    let server = Server::bind().await;
    let mut config = config(server.address());
    game(&mut config).kind = ProtocolKind::RakNet;
    config.udp.listen = Some("127.0.0.1:0".parse().unwrap());
    let bound = Relay::bind(config).await.unwrap();
    let front = bound.udp_addr().unwrap();
    tokio::spawn(bound.run(std::future::pending()));

    let client = Server::bind().await;
    client.send(&bytes(&Offline::Request1 { protocol: 11, mtu: MAX_MTU }), front).await;
    let (reply, _) = client.receive().await;
    let Some(Offline::Reply1 { security: ServerSecurity::Cookie(cookie), .. }) = offline(&reply) else {
        panic!("{reply:02x?}")
    };
    let security = ClientSecurity::Cookie(cookie);
    let request_2 = Offline::Request2 { security, server: front, mtu: MAX_MTU, guid: CLIENT };
    client.send(&bytes(&request_2), front).await;
    let (_, flow) = next(&server).await;
    let reply_1 = Offline::Reply1 { guid: SERVER, security: ServerSecurity::None, mtu: MAX_MTU };
    server.send(&bytes(&reply_1), flow).await;
    let _request_2 = next(&server).await;
    let reply_2 = Offline::Reply2 { guid: SERVER, client: flow, mtu: MAX_MTU, answer: None };
    server.send(&bytes(&reply_2), flow).await;
    let _reply_2 = client.receive().await;

    for length in [1_473, 1_480, MAX_MTU.into()] {
        let datagram = vec![0x84; length];
        client.send(&datagram, front).await;
        assert_eq!(next(&server).await, (datagram, flow));
    }
    client.send(&[0x84; MAX_MTU as usize + 1], front).await;
    client.send(&CONNECTED, front).await;
    assert_eq!(next(&server).await.0, CONNECTED, "a longer datagram is dropped");
}

/// The server accepts each client separately.
#[tokio::test]
async fn each_raknet_client_is_accepted_separately() {
    let server = Server::bind().await;
    let relay = relay(ProtocolKind::RakNet, &server).await;
    let mut other = relay.client().await;
    let client = relay.client().await;
    let request_1 = bytes(&Offline::Request1 { protocol: 11, mtu: MTU });
    let mut flow = Flow::begin(relay, server, client, &request_1).await;
    let reply_2 = bytes(&Offline::Reply2 { guid: SERVER, client: flow.from, mtu: MTU, answer: None });
    flow.answer(&reply_2).await;

    other.send(&CONNECTED).await;
    other.send(&request_1).await;
    let (datagram, from) = next(&flow.server).await;
    assert!(datagram == request_1 && from != flow.from, "{datagram:02x?} from {from}");
    flow.ask(&CONNECTED).await;
    assert_eq!(flow.drops(), 1);
}

#[tokio::test]
async fn game_protocol_packets_pass_once_the_server_answers() {
    const SALT: [u8; 4] = [0x49, 0x9E, 0xD2, 0x67];
    const PEPPER: [u8; 4] = [0xA1, 0xB2, 0xC3, 0xD4];
    const PACKET: [u8; 6] = [5, 0, 0, 7, b'h', b'i'];

    let server = Server::bind().await;
    let relay = relay(ProtocolKind::GameProtocol, &server).await;
    let mut client = relay.client().await;
    client.send(&PACKET).await;
    let mut flow = Flow::begin(relay, server, client, &SALT).await;
    flow.client.send(&PACKET).await;
    flow.ask(&SALT).await;
    assert_eq!(flow.drops(), 2);
    flow.answer(&PEPPER).await;
    flow.ask(&PACKET).await;
    assert_eq!(flow.drops(), 2);
}

/// Runs a server that answers every ping. Returns the times in the pings of clients that reached it.
fn answer_pings(server: Server) -> Arc<Mutex<Vec<u64>>> {
    let seen = Arc::<Mutex<Vec<u64>>>::default();
    let asked = Arc::clone(&seen);
    tokio::spawn(async move {
        let mut buffer = [0; 2_048];
        loop {
            let (length, from) = server.0.recv_from(&mut buffer).await.unwrap();
            let Some(Offline::Ping { time, guid, .. }) = offline(&buffer[..length]) else { continue };
            if guid == Some(CLIENT) {
                asked.lock().unwrap().push(time);
            }
            let pong = bytes(&Offline::Pong { time, guid: SERVER, data: ADVERTISEMENT });
            server.send(&pong, from).await;
        }
    });
    seen
}

/// Sends a ping with this time, and returns the pong.
async fn ping(client: &mut Client, time: u64) {
    client.send(&bytes(&Offline::Ping { scope: PingScope::Any, time, guid: Some(CLIENT) })).await;
    let pong = client.receive().await;
    assert_eq!(offline(&pong), Some(Offline::Pong { time, guid: SERVER, data: ADVERTISEMENT }));
}

/// Only the relay pings the server. Clients get the cached pong with the time of their own pings.
#[tokio::test]
async fn pings_are_answered_from_the_cache() {
    let server = Server::bind().await;
    let relay = relay(ProtocolKind::RakNet, &server).await;
    let seen = answer_pings(server);
    for number in 1..=5 {
        let mut client = relay.client().await;
        within(async {
            // Before the relay has a pong, clients' pings are forwarded to the server.
            for time in (number * 1_000_000..).step_by(1_000) {
                ping(&mut client, time).await;
                if !seen.lock().unwrap().contains(&time) {
                    return;
                }
                sleep(Duration::from_millis(20)).await;
            }
        })
        .await;
    }
}

/// Without the report, a client of another protocol would wait until its timeout.
#[tokio::test]
async fn a_protocol_mismatch_is_reported_to_the_client() {
    let request = bytes(&Offline::Request1 { protocol: 6, mtu: MTU });
    let cases = [
        (ProtocolKind::RakNet, vec![1, 2, 3, 4], "uses raknet"),
        (ProtocolKind::GameProtocol, request, "uses game-protocol"),
    ];
    for (kind, first, expected) in cases {
        let server = Server::bind().await;
        let relay = relay(kind, &server).await;
        let mut client = relay.client().await;
        client.send(&first).await;
        let (code, text) = client.closed().await;
        assert!(code == 4406 && text.ends_with(expected), "{code} {text}");
    }
}
