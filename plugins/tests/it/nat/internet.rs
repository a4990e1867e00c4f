//! Simulates an internet: peers behind routers, and a facilitator that all of them can reach.

use core::time::Duration;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::{IpAddr, SocketAddr};

use rakwire::endpoint::{Capacity, ConnectionId, Event, Hooked, Peer, PluginHost, PluginKey};
use rakwire::raknet::{Config, Guid, OutOfBand, RakNet};
use rakwire::sim::{Nat, NatBehavior};
use rakwire::wire::offline::Offline;
use rakwire::wire::{Reader, Wire, Writer};
use rakwire::{Instant, Machine};
use rakwire_plugins::nat::{Action, Facilitator, NatType, Outcome, Traversal};

/// The one-way latency between machines of different networks; a round trip takes 50 ms.
const ACROSS: Duration = Duration::from_millis(25);
/// The one-way latency within a network.
const WITHIN: Duration = Duration::from_micros(500);
const FACILITATOR: &str = "198.51.100.1";
const MAIN_PORT: u16 = 61_111;
const PROBE_PORTS: [u16; 6] = [61_112, 61_113, 61_114, 61_115, 61_116, 61_117];
pub(crate) const FORWARDING_PORTS: [u16; 2] = [61_120, 61_121];

type Server = Hooked<'static, RakNet, PluginHost<Facilitator<8, 8>, 1>>;
type Player = Hooked<'static, RakNet, PluginHost<Traversal<4>, 1>>;

/// A network; 0 is the internet.
type Realm = usize;

/// A router between a network and the one outside it.
struct Router {
    nat: Nat,
    inside: Realm,
    outside: Realm,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Packet {
    at: Instant,
    number: u64,
    realm: Realm,
    from: SocketAddr,
    to: SocketAddr,
    bytes: Vec<u8>,
}

pub(crate) struct Client {
    realm: Realm,
    address: SocketAddr,
    pub(crate) guid: Guid,
    peer: Player,
    key: PluginKey,
    facilitator: ConnectionId,
    pub(crate) outcomes: Vec<Outcome>,
    /// The connected peers besides the facilitator.
    pub(crate) connected: Vec<(Guid, SocketAddr)>,
    ids: Vec<ConnectionId>,
}

pub(crate) struct Internet {
    pub(crate) now: Instant,
    server: Server,
    server_key: PluginKey,
    routers: Vec<Router>,
    pub(crate) clients: Vec<Client>,
    queue: BinaryHeap<Reverse<Packet>>,
    number: u64,
    pub(crate) packets: u64,
    seed: u8,
}

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

impl Internet {
    pub(crate) fn new(seed: u8, forwarding_ports: &[u16]) -> Self {
        let mut config = Config::new([200 ^ seed; 32]);
        config.max_incoming = 8;
        let mut host = PluginHost::new();
        let facilitator = Facilitator::new(&PROBE_PORTS, forwarding_ports, [seed ^ 0x55; 32]);
        let server_key = host.attach::<RakNet>(facilitator).expect("a free slot");
        let capacity = Capacity { connections: 8, blocks: 512, block_size: 256 };
        Self {
            now: Instant::ZERO,
            server: Hooked::new(Peer::with_capacity(capacity, config), host),
            server_key,
            routers: Vec::new(),
            clients: Vec::new(),
            queue: BinaryHeap::new(),
            number: 0,
            packets: 0,
            seed,
        }
    }

    /// Adds a network behind a router.
    pub(crate) fn network(&mut self, outside: Realm, behavior: NatBehavior) -> Realm {
        let inside = self.routers.len() + 1;
        let address = if outside == 0 {
            IpAddr::from([203, 0, 113, inside as u8])
        } else {
            IpAddr::from([10, outside as u8, 0, 200 + inside as u8])
        };
        let nat = Nat::new(address, behavior, u64::from(self.seed) << 8 | inside as u64);
        self.routers.push(Router { nat, inside, outside });
        inside
    }

    /// Adds a client, which connects to the facilitator.
    pub(crate) fn client(&mut self, realm: Realm) -> usize {
        let number = self.clients.len() as u8 + 1;
        let ip = if realm == 0 {
            IpAddr::from([192, 0, 2, number])
        } else {
            IpAddr::from([10, realm as u8, 0, number])
        };
        let address = SocketAddr::new(ip, 5_000);
        let mut config = Config::new([number; 32]);
        config.max_incoming = 4;
        config.out_of_band = OutOfBand::Accept;
        let guid = config.guid;
        let mut traversal = Traversal::new();
        traversal.set_internal_addresses(&[address]);
        let mut host = PluginHost::new();
        let key = host.attach::<RakNet>(traversal).expect("a free slot");
        let capacity = Capacity { connections: 8, blocks: 512, block_size: 256 };
        let mut peer = Hooked::new(Peer::with_capacity(capacity, config), host);
        let server = SocketAddr::new(self::ip(FACILITATOR), MAIN_PORT);
        let facilitator = peer.peer.connect(self.now, server).expect("a free slot");
        let (outcomes, connected, ids) = (Vec::new(), Vec::new(), Vec::new());
        self.clients.push(Client { realm, address, guid, peer, key, facilitator, outcomes, connected, ids });
        self.clients.len() - 1
    }

    pub(crate) fn traversal(&mut self, client: usize) -> &mut Traversal<4> {
        let Client { peer, key, .. } = &mut self.clients[client];
        peer.hook.get_mut(*key).expect("the plugin is attached")
    }

    pub(crate) fn facilitator(&mut self) -> &mut Facilitator<8, 8> {
        self.server.hook.get_mut(self.server_key).expect("the plugin is attached")
    }

    pub(crate) fn nat_type(&mut self, client: usize) -> NatType {
        self.traversal(client).nat_type()
    }

    /// Closes a client's connection to the facilitator.
    pub(crate) fn leave_facilitator(&mut self, client: usize) {
        let id = self.clients[client].facilitator;
        self.clients[client].peer.peer.disconnect(self.now, id);
    }

    /// Closes a client's connections to all other clients.
    pub(crate) fn leave_others(&mut self, client: usize) {
        let Client { peer, ids, .. } = &mut self.clients[client];
        ids.iter().for_each(|id| peer.peer.disconnect(self.now, *id));
    }

    /// Makes one client request a connection to another.
    pub(crate) fn open(&mut self, from: usize, to: usize) {
        let guid = self.clients[to].guid;
        self.traversal(from).open(guid).expect("enough space");
    }

    fn push(&mut self, delay: Duration, realm: Realm, from: SocketAddr, to: SocketAddr, bytes: Vec<u8>) {
        self.number += 1;
        self.queue.push(Reverse(Packet {
            at: self.now + delay,
            number: self.number,
            realm,
            from,
            to,
            bytes,
        }));
    }

    fn is_host(&self, realm: Realm, ip: IpAddr) -> bool {
        let is_server = realm == 0 && ip == self::ip(FACILITATOR);
        is_server || self.clients.iter().any(|client| client.realm == realm && client.address.ip() == ip)
    }

    /// Forwards a datagram out of its network, through as many routers as necessary.
    fn send(&mut self, mut realm: Realm, mut from: SocketAddr, to: SocketAddr, bytes: Vec<u8>) {
        self.packets += 1;
        loop {
            let is_router = |router: &Router| {
                router.outside == realm && router.nat.ip() == to.ip() && router.inside != realm
            };
            if self.is_host(realm, to.ip()) || self.routers.iter().any(is_router) {
                let delay = if realm == 0 { ACROSS } else { WITHIN };
                return self.push(delay, realm, from, to, bytes);
            }
            let now = self.now;
            let Some(router) = self.routers.iter_mut().find(|router| router.inside == realm) else { return };
            if router.nat.ip() == to.ip() {
                if !router.nat.behavior().hairpinning {
                    return;
                }
                from = router.nat.outbound(now, from, to);
                let Some(inside) = router.nat.inbound(now, to.port(), from) else { return };
                return self.push(WITHIN, realm, from, inside, bytes);
            }
            from = router.nat.outbound(now, from, to);
            realm = router.outside;
        }
    }

    /// Handles a datagram that has arrived in a network.
    fn arrive(&mut self, realm: Realm, from: SocketAddr, to: SocketAddr, bytes: &[u8]) {
        if realm == 0 && to.ip() == ip(FACILITATOR) {
            return self.arrive_at_server(from, to.port(), bytes);
        }
        let now = self.now;
        let host = |client: &&mut Client| client.realm == realm && client.address == to;
        if let Some(client) = self.clients.iter_mut().find(host) {
            client.peer.handle_datagram(now, from, bytes);
        } else if let Some(router) =
            self.routers.iter().find(|router| router.outside == realm && router.nat.ip() == to.ip())
            && let Some(inside) = router.nat.inbound(now, to.port(), from)
        {
            let realm = router.inside;
            self.arrive(realm, from, inside, bytes);
        }
    }

    fn arrive_at_server(&mut self, from: SocketAddr, port: u16, bytes: &[u8]) {
        let now = self.now;
        if port == MAIN_PORT {
            self.server.handle_datagram(now, from, bytes);
        } else if PROBE_PORTS.contains(&port) {
            if let Ok(Offline::OutOfBand { data, .. }) = Offline::read(&mut Reader::new(bytes)) {
                self.facilitator().handle_probe(from, data);
            }
        } else if let Some(onward) = self.facilitator().handle_forwarded(now, port, from, bytes) {
            self.send(0, SocketAddr::new(ip(FACILITATOR), port), onward, bytes.to_vec());
        }
    }

    fn transmit(&mut self) {
        let mut buffer = [0; 1_500];
        while self.server.poll_event().is_some() {}
        while let Some(probe) = self.facilitator().poll_filter_probe() {
            let mut writer = Writer::new(&mut buffer);
            Offline::OutOfBand { guid: Guid(1), data: &probe.payload }
                .write(&mut writer)
                .expect("enough space");
            let bytes = writer.finish().to_vec();
            self.send(0, SocketAddr::new(ip(FACILITATOR), probe.port), probe.to, bytes);
        }
        while let Some(transmit) = self.server.poll_transmit(self.now, &mut buffer) {
            let (to, bytes) = (transmit.to, transmit.payload.to_vec());
            self.send(0, SocketAddr::new(ip(FACILITATOR), MAIN_PORT), to, bytes);
        }
        for client in 0..self.clients.len() {
            let now = self.now;
            self.clients[client].poll(now);
            while let Some(transmit) = self.clients[client].peer.poll_transmit(now, &mut buffer) {
                let (to, bytes) = (transmit.to, transmit.payload.to_vec());
                let Client { realm, address, .. } = self.clients[client];
                self.send(realm, address, to, bytes);
            }
        }
    }

    fn step(&mut self) {
        self.transmit();
        let arrival = self.queue.peek().map(|Reverse(packet)| packet.at);
        let peers = self.clients.iter().filter_map(|client| client.peer.poll_timeout());
        let next = peers.chain(arrival).chain(self.server.poll_timeout()).min();
        self.now = self.now.max(next.expect("a connected peer has a timeout"));
        while self.queue.peek().is_some_and(|Reverse(packet)| packet.at <= self.now) {
            let Reverse(Packet { realm, from, to, bytes, .. }) = self.queue.pop().expect("a queued packet");
            self.arrive(realm, from, to, &bytes);
        }
        let now = self.now;
        if self.server.poll_timeout().is_some_and(|due| due <= now) {
            self.server.handle_timeout(now);
        }
        for client in &mut self.clients {
            if client.peer.poll_timeout().is_some_and(|due| due <= now) {
                client.peer.handle_timeout(now);
            }
        }
    }

    /// Advances time until `is_so` holds, and returns the time that passed; `None` after a minute.
    pub(crate) fn until(&mut self, is_so: impl Fn(&Self) -> bool) -> Option<Duration> {
        let begin = self.now;
        while !is_so(self) {
            self.step();
            if self.now > begin + Duration::from_secs(60) {
                return None;
            }
        }
        Some(self.now.saturating_since(begin))
    }

    pub(crate) fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.step();
        }
    }

    /// Returns true if two clients are connected to each other.
    pub(crate) fn are_connected(&self, a: usize, b: usize) -> bool {
        let knows = |a: usize, b: usize| {
            self.clients[a].connected.iter().any(|(guid, _)| *guid == self.clients[b].guid)
        };
        knows(a, b) && knows(b, a)
    }
}

impl Client {
    fn poll(&mut self, now: Instant) {
        loop {
            let (mut heard, mut opened) = (None, None);
            let Some(event) = self.peer.poll_event() else { break };
            {
                match event {
                    Event::OutOfBand { from, data, .. } => {
                        heard = Some((from, data.chunks().flatten().copied().collect::<Vec<u8>>()));
                    }
                    Event::Connected { id, remote, .. } if id == self.facilitator => opened = Some(remote),
                    Event::Connected { id, remote, identity, .. } => {
                        self.connected.push((identity, remote));
                        self.ids.push(id);
                    }
                    Event::Disconnected { id, .. } => {
                        if let Some(at) = self.ids.iter().position(|own| *own == id) {
                            self.ids.remove(at);
                            self.connected.remove(at);
                        }
                    }
                    Event::Message { .. } => panic!("the application received a message of the plugin"),
                    Event::ConnectFailed { .. } => panic!("a connection attempt failed"),
                    Event::Receipt { .. }
                    | Event::Progress { .. }
                    | Event::Pong { .. }
                    | Event::Advertisement { .. }
                    | _ => {}
                }
            }
            let traversal = self.peer.hook.get_mut(self.key).expect("the plugin is attached");
            if let Some(remote) = opened {
                traversal.set_facilitator(self.facilitator, remote);
            }
            if let Some((from, data)) = heard {
                assert!(traversal.handle_out_of_band(now, from, &data));
            }
        }
        let traversal = self.peer.hook.get_mut(self.key).expect("the plugin is attached");
        while let Some(outcome) = traversal.poll_outcome() {
            self.outcomes.push(outcome);
        }
        while let Some(action) = self.peer.hook.get_mut(self.key).and_then(Traversal::poll_action) {
            match action {
                // If the peer does not accept the punch, the plugin repeats it.
                Action::Send { to, payload } => drop(self.peer.peer.send_out_of_band(now, to, &payload)),
                Action::Connect { address, .. } => {
                    self.peer.peer.connect(now, address).expect("a free slot");
                }
            }
        }
    }
}
