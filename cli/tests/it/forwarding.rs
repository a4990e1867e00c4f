//! The datagrams that `rakwire facilitator` forwards.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::time::Duration;

use rakwire::wire::offline::Offline;
use rakwire::wire::{Wire, Writer};
use rakwire_native::raknet::{Connection, Delivery, Endpoint, Guid, Options};
use rakwire_plugins::nat::{FromClient, FromFacilitator, MAX_MESSAGE, Punch, PunchKind};

use crate::support::{DEADLINE, Server};

/// The variable with the facilitator to use when the test runs in a network namespace.
pub(crate) const FACILITATOR: &str = "RAKWIRE_TEST_FACILITATOR";
/// The path of the test that reads [`FACILITATOR`].
pub(crate) const TEST: &str = "forwarding::the_facilitator_forwards_datagrams_unchanged";

/// Datagram lengths in bytes: the longest that rakwire sends, one more, and the longest of other peers.
const LENGTHS: [usize; 3] = [1_464, 1_465, 1_492];
/// The retry interval of a datagram.
const INTERVAL: Duration = Duration::from_millis(200);

/// One of two peers that cannot reach each other.
struct Client {
    endpoint: Endpoint,
    facilitator: Connection,
}

impl Client {
    async fn at(facilitator: SocketAddr) -> Self {
        let options = Options::client().expect("random numbers");
        let endpoint = Endpoint::bind((any(facilitator), 0), options).await.expect("a free port");
        let facilitator = endpoint.connect(facilitator).await.expect("a facilitator");
        let client = Self { endpoint, facilitator };
        client.send(&FromClient::Hello { internal: [].into_iter().collect() }).await;
        while !matches!(client.next_message().await, FromFacilitator::Probed { token: 0, .. }) {}
        client
    }

    async fn send(&self, message: &FromClient) {
        let mut buffer = [0; MAX_MESSAGE];
        let bytes = message.encode(&mut buffer).expect("enough space");
        self.facilitator.send(bytes, Delivery::RELIABLE_ORDERED).await.expect("a connection");
    }

    async fn next_message(&self) -> FromFacilitator {
        let message = tokio::time::timeout(DEADLINE, self.facilitator.recv()).await;
        let message = message.expect("a message before the deadline").expect("a connection");
        FromFacilitator::decode(&message.bytes).expect("a message of a facilitator")
    }

    /// Reports each direct attempt as failed until the facilitator forwards. Returns the session and the forwarding
    /// port.
    async fn forwarded(&self) -> (u64, u16) {
        loop {
            match self.next_message().await {
                FromFacilitator::Begin { session, .. } => self.send(&FromClient::Failed { session }).await,
                FromFacilitator::Forwarded { session, port, .. } => return (session, port),
                FromFacilitator::Refused { reason, .. } => panic!("{reason}"),
                FromFacilitator::Probe { .. } | FromFacilitator::Probed { .. } => {}
            }
        }
    }
}

fn any(family: SocketAddr) -> IpAddr {
    if family.is_ipv6() { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() }
}

/// Opens a socket to a forwarding port. Returns it with the punch that identifies the client to the facilitator.
fn end(port: SocketAddr, kind: PunchKind, session: u64) -> (UdpSocket, Vec<u8>) {
    let socket = UdpSocket::bind((any(port), 0)).expect("a free port");
    socket.connect(port).expect("a route to the facilitator");
    socket.set_read_timeout(Some(INTERVAL)).expect("a valid timeout");
    let mut buffer = [0; 100];
    let mut writer = Writer::new(&mut buffer);
    let punch = Offline::OutOfBand { guid: Guid(1), data: &Punch { kind, number: session }.encode() };
    punch.write(&mut writer).expect("enough space");
    (socket, writer.finish().to_vec())
}

/// Returns true if exactly this datagram arrives soon.
fn arrives(socket: &UdpSocket, datagram: &[u8]) -> bool {
    let mut buffer = [0; 4_096];
    let mut received =
        std::iter::from_fn(|| socket.recv(&mut buffer).ok().map(|length| buffer[..length].to_vec()));
    received.any(|received| received == datagram)
}

#[tokio::test]
async fn the_facilitator_forwards_datagrams_unchanged() {
    let (_own, facilitator) = match std::env::var(FACILITATOR) {
        Ok(address) => (None, address),
        Err(_) => {
            let listen = ["facilitator", "--listen", "127.0.0.1:0", "--forwarding-ports", "1"];
            let own = Server::start(Path::new(env!("CARGO_BIN_EXE_rakwire")), &listen, "listening on ");
            let address = own.announced.clone();
            (Some(own), address)
        }
    };
    let facilitator = rakwire_native::lookup(&facilitator).await.expect("an address")[0];
    let [connecting, accepting] = [Client::at(facilitator).await, Client::at(facilitator).await];
    connecting.send(&FromClient::Open { target: accepting.endpoint.guid() }).await;
    let ((session, port), _) = tokio::join!(connecting.forwarded(), accepting.forwarded());
    let mut at = facilitator;
    at.set_port(port);
    let (connecting_end, to_accepting) = end(at, PunchKind::ToAccepting, session);
    let (accepting_end, to_connecting) = end(at, PunchKind::ToConnecting, session);
    // A punch is lost if the facilitator has not received a punch from the other socket yet.
    let has_both = (0..100).any(|_| {
        connecting_end.send(&to_accepting).expect("enough space");
        accepting_end.send(&to_connecting).expect("enough space");
        arrives(&connecting_end, &to_connecting)
    });
    assert!(has_both, "the facilitator forwarded no punch");
    for length in LENGTHS {
        let datagram: Vec<u8> = (0..length).map(|at| 0x84 ^ at as u8).collect();
        for (from, to) in [(&connecting_end, &accepting_end), (&accepting_end, &connecting_end)] {
            let passes = (0..100).any(|_| {
                from.send(&datagram).expect("enough space");
                arrives(to, &datagram)
            });
            assert!(passes, "{length} bytes do not arrive whole");
        }
    }
}
