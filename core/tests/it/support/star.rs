//! A server and many clients of either protocol, each on a path of the same latency.

use core::cmp::Reverse;
use core::net::SocketAddr;
use core::time::Duration;
use std::collections::{BinaryHeap, HashMap};

use rakwire::Instant;
use rakwire::endpoint::{Capacity, ConnectionId, Event, Peer, Protocol};

const LATENCY: Duration = Duration::from_millis(20);

/// A datagram in flight: its arrival time, its sequence number, its source, its destination and its bytes.
type Transit = Reverse<(Instant, u64, SocketAddr, SocketAddr, Vec<u8>)>;

pub(crate) struct Client<P: Protocol> {
    pub(crate) peer: Peer<'static, P>,
    pub(crate) id: ConnectionId,
    /// The id of the client's connection at the server.
    pub(crate) at_server: Option<ConnectionId>,
    /// True while the client sends and receives.
    pub(crate) is_alive: bool,
    pub(crate) received: usize,
}

pub(crate) struct Star<P: Protocol> {
    pub(crate) now: Instant,
    pub(crate) server: Peer<'static, P>,
    pub(crate) clients: Vec<Client<P>>,
    /// The number of messages of each client that the server has read.
    pub(crate) read: Vec<usize>,
    /// The number of closed connections at the server.
    pub(crate) ended: usize,
    by_id: HashMap<ConnectionId, usize>,
    transits: BinaryHeap<Transit>,
    sent: u64,
}

fn server_address() -> SocketAddr {
    ([192, 0, 2, 1], 19_132).into()
}

fn address(client: usize) -> SocketAddr {
    let [_, _, high, low] = (client as u32).to_be_bytes();
    ([10, 0, high, low], 4_000).into()
}

fn index(address: SocketAddr) -> Option<usize> {
    let SocketAddr::V4(address) = address else { return None };
    let [ten, _, high, low] = address.ip().octets();
    (ten == 10).then_some(usize::from(high) << 8 | usize::from(low))
}

impl<P: Protocol> Star<P> {
    /// Creates a server with `capacity` and `clients` connected clients.
    pub(crate) fn connected(capacity: Capacity, mut config: P::Config, clients: usize) -> Self {
        *P::max_incoming(&mut config) = capacity.connections as u16;
        let mut star = Self {
            now: Instant::from_micros(1_000_000),
            server: Peer::with_capacity(capacity, config),
            clients: Vec::new(),
            read: vec![0; clients],
            ended: 0,
            by_id: HashMap::new(),
            transits: BinaryHeap::new(),
            sent: 0,
        };
        for number in 0..clients {
            let mut entropy = [7; 32];
            entropy[..8].copy_from_slice(&(number as u64 + 1).to_be_bytes());
            entropy[16..24].copy_from_slice(&(number as u64 + 1).to_be_bytes());
            let small = Capacity { connections: 1, blocks: 1_024, block_size: 512 };
            let mut peer = Peer::with_capacity(small, P::config(entropy));
            let id = peer.connect(star.now, server_address()).expect("a free slot");
            star.clients.push(Client { peer, id, at_server: None, is_alive: true, received: 0 });
            star.run_for(Duration::from_millis(1));
        }
        // If the slot of a client was taken meanwhile, the client retransmits its request with a cookie.
        star.run_for(Duration::from_secs(3));
        let opened = star.clients.iter().filter(|client| client.at_server.is_some()).count();
        assert_eq!(opened, clients, "all clients must be connected");
        star
    }

    /// Runs in steps of a millisecond.
    pub(crate) fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.now = self.now + Duration::from_millis(1);
            self.step();
        }
    }

    fn step(&mut self) {
        while let Some(Reverse((at, ..))) = self.transits.peek()
            && *at <= self.now
        {
            let Some(Reverse((at, _, from, to, bytes))) = self.transits.pop() else { return };
            match index(to) {
                None => self.server.handle_datagram(at, from, &bytes),
                Some(client) => self.clients[client].peer.handle_datagram(at, from, &bytes),
            }
            // Polls after each datagram, as a driver does, so that few responses are queued at a time.
            match index(to) {
                None => self.serve(),
                Some(client) => self.drive(client),
            }
        }
        if self.server.poll_timeout().is_some_and(|at| at <= self.now) {
            self.serve();
        }
        for client in 0..self.clients.len() {
            if self.clients[client].peer.poll_timeout().is_some_and(|at| at <= self.now) {
                self.drive(client);
            }
        }
    }

    fn serve(&mut self) {
        self.server.handle_timeout(self.now);
        while let Some(event) = self.server.poll_event() {
            match event {
                Event::Connected { id, remote, .. } => {
                    let client = index(remote).expect("a client");
                    self.clients[client].at_server = Some(id);
                    self.by_id.insert(id, client);
                }
                Event::Message { id, .. } => {
                    self.read[self.by_id[&id]] += 1;
                }
                Event::Disconnected { .. } => self.ended += 1,
                Event::ConnectFailed { .. }
                | Event::Receipt { .. }
                | Event::Progress { .. }
                | Event::MtuChanged { .. }
                | Event::Pong { .. }
                | Event::OutOfBand { .. }
                | Event::Advertisement { .. }
                | _ => {}
            }
        }
        let mut buffer = [0; 2_048];
        while let Some(transmit) = self.server.poll_transmit(self.now, &mut buffer) {
            let at = self.now + LATENCY;
            self.sent += 1;
            let client = index(transmit.to).expect("a client");
            if self.clients[client].is_alive {
                let bytes = transmit.payload.to_vec();
                self.transits.push(Reverse((at, self.sent, server_address(), transmit.to, bytes)));
            }
        }
    }

    fn drive(&mut self, number: usize) {
        let client = &mut self.clients[number];
        client.peer.handle_timeout(self.now);
        while let Some(event) = client.peer.poll_event() {
            client.received += usize::from(matches!(event, Event::Message { .. }));
        }
        let mut buffer = [0; 2_048];
        while let Some(transmit) = client.peer.poll_transmit(self.now, &mut buffer) {
            self.sent += 1;
            if client.is_alive {
                let (at, bytes) = (self.now + LATENCY, transmit.payload.to_vec());
                self.transits.push(Reverse((at, self.sent, address(number), server_address(), bytes)));
            }
        }
    }

    /// Sends from the server to a client.
    pub(crate) fn send_to(
        &mut self,
        client: usize,
        message: &[u8],
        delivery: P::Delivery,
    ) -> Result<(), rakwire::endpoint::SendError> {
        let id = self.clients[client].at_server.expect("a connection");
        self.server.send(self.now, id, message, delivery).map(|_| ())
    }

    /// Sends from a client to the server.
    pub(crate) fn send_from(
        &mut self,
        client: usize,
        message: &[u8],
        delivery: P::Delivery,
    ) -> Result<(), rakwire::endpoint::SendError> {
        let client = &mut self.clients[client];
        client.peer.send(self.now, client.id, message, delivery).map(|_| ())
    }
}
