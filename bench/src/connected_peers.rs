//! A server and its clients without sockets, in virtual time, to measure the protocol itself.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant as WallInstant};

use rakwire::Instant;
use rakwire::raknet::{
    Capacity, Config, ConnectOptions, ConnectionId, Delivery, DropReason, Event, Guid, Peer, Security,
    SendError,
};
use rakwire::secure::{ServerIdentity, ServerTrust, StaticKey};
use rakwire::wire::MAX_DATAGRAM;

/// The virtual time between two rounds, which is also the round-trip time.
const ROUND: Duration = Duration::from_millis(1);
/// The time between two ticks at 60 ticks per second.
const TICK: Duration = Duration::from_micros(16_667);
/// The block size of the native driver.
const BLOCK: usize = 512;
/// The address of the server.
const SERVER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 19_132);

/// A simulated path without latency that can lose the datagrams of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// Every datagram arrives.
    Clean,
    /// Every n-th datagram that the clients send is lost.
    LosesOneIn(u32),
}

/// The protection of datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// No protection.
    Plain,
    /// Secure connections.
    Secure,
}

impl Protection {
    fn of_server(self, config: &mut Config) {
        if self == Self::Secure {
            let mut security = Security::new([3; 32]);
            security.server = Some(ServerIdentity::new(StaticKey::from_bytes([5; 32])));
            security.handshakes_per_second = u16::MAX;
            security.handshakes_per_network = u16::MAX;
            config.security = Some(security);
        }
    }

    fn of_client(self, config: &mut Config, number: u16) -> ConnectOptions<'static> {
        if self == Self::Plain {
            return ConnectOptions::default();
        }
        let [high, low] = number.to_be_bytes();
        let mut seed = [4; 32];
        seed[..2].copy_from_slice(&[high, low]);
        config.security = Some(Security::new(seed));
        ConnectOptions { trust: Some(ServerTrust::Any), ..ConnectOptions::default() }
    }
}

/// Forged datagrams with the source address of a client and without a valid tag; the field is their size in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forgery {
    /// In epoch 0, which is the current one on a new connection.
    Current(usize),
    /// In epoch 2, so that the receiver of a new connection derives a key for each datagram.
    AfterNext(usize),
}

impl Forgery {
    /// Builds a datagram with an epoch and a counter like those of a new sealed datagram.
    fn datagram(self) -> Vec<u8> {
        match self {
            Self::Current(size) => vec![0x8F; size],
            Self::AfterNext(size) => vec![0xCF; size],
        }
    }
}

/// A client and its connection to the server.
struct Client {
    peer: Peer<'static>,
    address: SocketAddr,
    id: ConnectionId,
}

/// A server and its clients.
///
/// ```
/// use rakwire_bench::connected_peers::{ConnectedPeers, Path, Protection};
///
/// let mut peers = ConnectedPeers::protected(2, 1_024, Path::Clean, Protection::Secure);
/// peers.exchange(10, 100);
/// assert_eq!(peers.delivered(), 20);
/// ```
pub struct ConnectedPeers {
    server: Peer<'static>,
    clients: Vec<Client>,
    /// The server's ids of its connections to the clients.
    connected: Vec<ConnectionId>,
    now: Instant,
    path: Path,
    carried: u32,
    sent: u64,
    delivered: u64,
    echoed: u64,
    buffer: Box<[u8]>,
    protection: Protection,
}

impl ConnectedPeers {
    /// Creates a server and `clients` connected clients without security, each with `blocks` blocks.
    ///
    /// # Panics
    /// If a client fails to connect.
    #[must_use]
    pub fn new(clients: u16, blocks: usize, path: Path) -> Self {
        Self::protected(clients, blocks, path, Protection::Plain)
    }

    /// Creates a server and connected clients like [`new`](Self::new), with or without security.
    ///
    /// # Panics
    /// If a client fails to connect.
    #[must_use]
    pub fn protected(clients: u16, blocks: usize, path: Path, protection: Protection) -> Self {
        let connections = usize::from(clients);
        let mut config = Config::new([1; 32]);
        config.max_incoming = clients;
        config.max_message_len = u32::MAX;
        protection.of_server(&mut config);
        let capacity =
            Capacity { connections, blocks: (connections * 64).max(2 * blocks), block_size: BLOCK };
        let mut peers = Self {
            server: Peer::with_capacity(capacity, config),
            clients: Vec::new(),
            connected: Vec::new(),
            now: Instant::from_micros(1_000_000),
            path: Path::Clean,
            carried: 0,
            sent: 0,
            delivered: 0,
            echoed: 0,
            buffer: vec![0; MAX_DATAGRAM].into(),
            protection,
        };
        for number in 0..clients {
            peers.add_client(number, blocks);
            // The server queues only a few replies to unconnected clients.
            if number % 8 == 7 || number + 1 == clients {
                while peers.connected.len() < peers.clients.len() {
                    peers.round();
                }
            }
        }
        peers.path = path;
        peers
    }

    fn add_client(&mut self, number: u16, blocks: usize) {
        let mut config = Config::new([2; 32]);
        config.guid = Guid(1_000 + u64::from(number));
        config.max_message_len = u32::MAX;
        let options = self.protection.of_client(&mut config, number);
        let capacity = Capacity { connections: 1, blocks, block_size: BLOCK };
        let mut peer = Peer::with_capacity(capacity, config);
        let [high, low] = number.to_be_bytes();
        let address = SocketAddr::new(Ipv4Addr::new(10, 1, high, low).into(), 50_000);
        let id = peer.connect_with(self.now, SERVER, &options).expect("a free slot");
        self.clients.push(Client { peer, address, id });
    }

    /// Sends forged datagrams of `size` bytes to the server. Their source addresses rotate through the clients.
    ///
    /// # Panics
    /// If the server does not drop each of them as unauthentic.
    pub fn forge(&mut self, datagrams: usize, size: usize) {
        let forged = Forgery::Current(size).datagram();
        let before = self.server.stats().dropped(DropReason::Unauthentic);
        for client in self.clients.iter().cycle().take(datagrams) {
            self.server.handle_datagram(self.now, client.address, &forged);
        }
        let after = self.server.stats().dropped(DropReason::Unauthentic);
        assert_eq!(after - before, datagrams as u64, "the server must drop every forged datagram");
    }

    /// Returns the number of messages that the server has delivered.
    #[must_use]
    pub const fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Sends `each` reliable-ordered messages of `size` bytes from every client; returns when all are delivered.
    ///
    /// # Panics
    /// If a connection was closed.
    pub fn exchange(&mut self, each: usize, size: usize) {
        let message = vec![0x86; size];
        for _ in 0..each {
            for number in 0..self.clients.len() {
                self.send(number, &message);
            }
        }
        while self.delivered < self.sent {
            self.round();
        }
    }

    fn send(&mut self, number: usize, message: &[u8]) {
        loop {
            let Some(client) = self.clients.get_mut(number) else { return };
            match client.peer.send(self.now, client.id, message, Delivery::RELIABLE_ORDERED) {
                Ok(_) => break,
                Err(SendError::QuotaExceeded | SendError::PoolExhausted) => self.round(),
                Err(error) => panic!("{error}"),
            }
        }
        self.sent += 1;
    }

    /// Sends a message of `size` bytes from the first client, which the server echoes.
    ///
    /// # Panics
    /// If the connection was closed.
    pub fn ping_pong(&mut self, size: usize) {
        let message = vec![0x86; size];
        self.send(0, &message);
        while self.delivered < self.sent {
            self.round();
        }
        let id = *self.connected.first().expect("a connected client");
        self.server
            .send(self.now, id, &message, Delivery::RELIABLE_ORDERED)
            .expect("an open connection with free memory");
        let echoed = self.echoed;
        while self.echoed == echoed {
            self.round();
        }
    }

    /// Runs one tick of a game and returns how long the server took to process it.
    ///
    /// Every client sends an unreliable message of `size` bytes. Between them, `forged` datagrams of the kind `forgery`
    /// arrive with the source addresses of the clients.
    ///
    /// # Panics
    /// If a connection was closed, or the server does not drop each forged datagram as unauthentic.
    pub fn tick(&mut self, size: usize, forged: usize, forgery: Forgery) -> Duration {
        let message = vec![0x86; size];
        let mut arrived = Vec::new();
        for client in &mut self.clients {
            if client.peer.poll_timeout().is_some_and(|due| due <= self.now) {
                client.peer.handle_timeout(self.now);
            }
            let sent = client.peer.send(self.now, client.id, &message, Delivery::UNRELIABLE);
            sent.expect("an open connection with free memory");
            while let Some(transmit) = client.peer.poll_transmit(self.now, &mut self.buffer) {
                arrived.push((client.address, transmit.payload.to_vec()));
            }
        }
        let (before, dropped) = (self.delivered, self.server.stats().dropped(DropReason::Unauthentic));
        let in_their_names = forgery.datagram();
        let each = forged.div_ceil(arrived.len().max(1));
        let mut left = forged;
        let began = WallInstant::now();
        for (from, datagram) in &arrived {
            for _ in 0..each.min(left) {
                self.server.handle_datagram(self.now, *from, &in_their_names);
            }
            left = left.saturating_sub(each);
            self.server.handle_datagram(self.now, *from, datagram);
        }
        let answers = self.serve();
        let taken = began.elapsed();
        assert_eq!(
            self.delivered - before,
            self.clients.len() as u64,
            "the server must receive the message of every client"
        );
        let dropped = self.server.stats().dropped(DropReason::Unauthentic) - dropped;
        assert_eq!(dropped, forged as u64, "the server must drop every forged datagram");
        for (number, datagram) in answers {
            if let Some(client) = self.clients.get_mut(number) {
                client.peer.handle_datagram(self.now, SERVER, &datagram);
                while client.peer.poll_event().is_some() {}
            }
        }
        self.now = self.now + TICK;
        taken
    }

    /// Handles the server's events and timers. Returns its datagrams, each with the number of the receiving client.
    fn serve(&mut self) -> Vec<(usize, Vec<u8>)> {
        while let Some(event) = self.server.poll_event() {
            self.delivered += u64::from(matches!(event, Event::Message { .. }));
        }
        if self.server.poll_timeout().is_some_and(|due| due <= self.now) {
            self.server.handle_timeout(self.now);
        }
        let mut sent = Vec::new();
        while let Some(transmit) = self.server.poll_transmit(self.now, &mut self.buffer) {
            sent.extend(number_of(transmit.to).map(|number| (number, transmit.payload.to_vec())));
        }
        sent
    }

    /// Handles timeouts and delivers every datagram once in each direction.
    fn round(&mut self) {
        for client in &mut self.clients {
            if client.peer.poll_timeout().is_some_and(|due| due <= self.now) {
                client.peer.handle_timeout(self.now);
            }
            while let Some(transmit) = client.peer.poll_transmit(self.now, &mut self.buffer) {
                self.carried = self.carried.wrapping_add(1);
                let lost = matches!(self.path, Path::LosesOneIn(many) if self.carried.is_multiple_of(many));
                if !lost {
                    self.server.handle_datagram(self.now, client.address, transmit.payload);
                }
            }
        }
        while let Some(event) = self.server.poll_event() {
            if let Event::Message { message, .. } = &event {
                self.delivered += u64::from(!message.is_empty());
            } else if let Event::Connected { id, .. } = event {
                self.connected.push(id);
            }
        }
        self.now = self.now + ROUND;
        if self.server.poll_timeout().is_some_and(|due| due <= self.now) {
            self.server.handle_timeout(self.now);
        }
        while let Some(transmit) = self.server.poll_transmit(self.now, &mut self.buffer) {
            if let Some(client) = number_of(transmit.to).and_then(|number| self.clients.get_mut(number)) {
                client.peer.handle_datagram(self.now, SERVER, transmit.payload);
            }
        }
        for client in &mut self.clients {
            while let Some(event) = client.peer.poll_event() {
                self.echoed += u64::from(matches!(event, Event::Message { .. }));
            }
        }
    }
}

/// Returns the number of the client with this address.
fn number_of(address: SocketAddr) -> Option<usize> {
    let std::net::IpAddr::V4(ip) = address.ip() else { return None };
    let [_, _, high, low] = ip.octets();
    Some(usize::from(u16::from_be_bytes([high, low])))
}
