//! Two peers of the Game Protocol connected by the simulator, with their events in lists.

use core::net::SocketAddr;
use core::time::Duration;

use rakwire::Instant;
use rakwire::game_protocol::wire::MAX_PACKET;
use rakwire::game_protocol::{
    Capacity, Config, ConnectFailure, ConnectionId, DisconnectReason, DropReason, Event, Peer, Redial,
    Reliability,
};
use rakwire::sim::{Conditions, Pair};

pub(crate) const CLIENT: ([u8; 4], u16) = ([192, 0, 2, 1], 1);
pub(crate) const SERVER: ([u8; 4], u16) = ([192, 0, 2, 2], 2);
pub(crate) const UNKNOWN_SOURCE: ([u8; 4], u16) = ([203, 0, 113, 9], 4_000);
pub(crate) const START: Instant = Instant::from_micros(1_000_000);

/// Returns the time in milliseconds after [`START`].
pub(crate) fn at(millis: u64) -> Instant {
    START + Duration::from_millis(millis)
}

/// The maximum number of simulation steps of a run, which only an endless loop reaches.
const STEPS: usize = 200_000;

/// An event for the application, with its data copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OwnedEvent {
    Connected(ConnectionId),
    Failed(ConnectionId, ConnectFailure),
    Disconnected(ConnectionId, DisconnectReason),
    Message(ConnectionId, Reliability, Vec<u8>),
}

/// Returns a client that retransmits its handshake messages, for stateless servers.
pub(crate) fn client_config() -> Config {
    let mut config = Config::new([1; 32]);
    config.redial = Redial::SamePort(Duration::from_millis(300));
    config
}

pub(crate) fn server_config() -> Config {
    let mut config = Config::new([2; 32]);
    config.max_incoming = 8;
    config
}

pub(crate) fn peer(config: Config) -> Peer<'static> {
    let connections = usize::from(config.max_incoming.max(8));
    Peer::with_capacity(Capacity { connections, blocks: 8_192, block_size: 512 }, config)
}

/// Returns the payload of the test vectors.
pub(crate) fn payload(length: usize) -> Vec<u8> {
    (0..length).map(|index| (index % 251) as u8).collect()
}

pub(crate) fn tell(peer: &mut Peer<'_>, events: &mut Vec<OwnedEvent>) {
    while let Some(event) = peer.poll_event() {
        events.push(match event {
            Event::Connected { id, .. } => OwnedEvent::Connected(id),
            Event::ConnectFailed { id, reason, .. } => OwnedEvent::Failed(id, reason),
            Event::Disconnected { id, reason, .. } => OwnedEvent::Disconnected(id, reason),
            Event::Message { id, delivery, message } => OwnedEvent::Message(id, delivery, message.to_vec()),
            Event::Receipt { .. }
            | Event::Progress { .. }
            | Event::MtuChanged { .. }
            | Event::Pong { .. }
            | Event::OutOfBand { .. }
            | Event::Advertisement { .. }
            | _ => panic!("{event:?}"),
        });
    }
}

/// Takes all pending events of a peer.
pub(crate) fn take_events(peer: &mut Peer<'_>) -> Vec<OwnedEvent> {
    let mut list = Vec::new();
    tell(peer, &mut list);
    list
}

/// Returns the messages in a list of events.
pub(crate) fn messages(events: &[OwnedEvent]) -> Vec<&[u8]> {
    events
        .iter()
        .filter_map(
            |event| if let OwnedEvent::Message(_, _, bytes) = event { Some(&bytes[..]) } else { None },
        )
        .collect()
}

/// Returns the reason for the first disconnection in a list of events.
pub(crate) fn ended(events: &[OwnedEvent]) -> Option<DisconnectReason> {
    events.iter().find_map(
        |event| {
            if let OwnedEvent::Disconnected(_, reason) = event { Some(*reason) } else { None }
        },
    )
}

/// Polls all datagrams from a peer, with their destinations.
pub(crate) fn output(peer: &mut Peer<'_>, now: Instant) -> Vec<(SocketAddr, Vec<u8>)> {
    let mut buffer = [0; MAX_PACKET];
    let mut datagrams = Vec::new();
    while let Some(transmit) = peer.poll_transmit(now, &mut buffer) {
        datagrams.push((transmit.to, transmit.payload.to_vec()));
    }
    datagrams
}

/// Polls all datagrams from a peer, without their destinations.
pub(crate) fn packets(peer: &mut Peer<'_>, now: Instant) -> Vec<Vec<u8>> {
    output(peer, now).into_iter().map(|(_, packet)| packet).collect()
}

/// Opens a connection from `address` to a server with the handshake of a client with `salt`; returns its id.
pub(crate) fn enter(server: &mut Peer<'_>, now: Instant, address: SocketAddr, salt: u32) -> ConnectionId {
    let seasoning = seasoning(server, now, address, salt);
    server.handle_datagram(now, address, &seasoning);
    let list = take_events(server);
    match list[..] {
        [OwnedEvent::Connected(id)] => id,
        _ => panic!("{list:?}"),
    }
}

/// Requests a challenge from a server; returns the correct response for `address`.
pub(crate) fn seasoning(server: &mut Peer<'_>, now: Instant, address: SocketAddr, salt: u32) -> [u8; 4] {
    server.handle_datagram(now, address, &salt.to_be_bytes());
    let answers = output(server, now);
    let [(to, pepper)] = &answers[..] else { panic!("{answers:?}") };
    assert_eq!(*to, address);
    let pepper = u32::from_be_bytes(pepper[..].try_into().expect("four bytes"));
    (salt ^ pepper).to_be_bytes()
}

/// Returns a server with one connection, to `CLIENT`.
pub(crate) fn server_with_client() -> (Peer<'static>, ConnectionId) {
    let mut server = peer(server_config());
    let id = enter(&mut server, START, CLIENT.into(), 7);
    (server, id)
}

/// Delivers one packet of `CLIENT` to a server; returns the responses.
pub(crate) fn feed(server: &mut Peer<'_>, packet: &[u8]) -> Vec<Vec<u8>> {
    server.handle_datagram(START, CLIENT.into(), packet);
    packets(server, START)
}

/// Returns the packet of a chunk.
pub(crate) fn packet(flags: u8, chunk: u8, sequence: u16, body: &[u8]) -> Vec<u8> {
    let [high, low] = sequence.to_be_bytes();
    [&[flags, chunk, high, low], body].concat()
}

pub(crate) fn dropped(peer: &Peer<'_>, reason: DropReason) -> u64 {
    peer.stats().dropped(reason)
}

pub(crate) struct Net {
    pub(crate) pair: Pair<Peer<'static>, Peer<'static>>,
    /// The events of the client, `a`.
    pub(crate) client: Vec<OwnedEvent>,
    /// The events of the server, `b`.
    pub(crate) server: Vec<OwnedEvent>,
}

impl Net {
    pub(crate) fn new(conditions: Conditions, seed: u64) -> Self {
        Self::with(peer(client_config()), peer(server_config()), conditions, seed)
    }

    pub(crate) fn with(a: Peer<'static>, b: Peer<'static>, conditions: Conditions, seed: u64) -> Self {
        Self { pair: Pair::new(a, b, conditions, seed), client: Vec::new(), server: Vec::new() }
    }

    pub(crate) fn now(&self) -> Instant {
        self.pair.now
    }

    pub(crate) fn poll(&mut self) {
        tell(&mut self.pair.a, &mut self.client);
        tell(&mut self.pair.b, &mut self.server);
    }

    /// Runs for at most `time` until `done` returns true; returns false if it never did.
    pub(crate) fn run_until(&mut self, time: Duration, mut done: impl FnMut(&mut Self) -> bool) -> bool {
        let end = self.now() + time;
        for _ in 0..STEPS {
            self.poll();
            if done(self) {
                return true;
            }
            self.pair.transmit();
            let pair = &mut self.pair;
            let deliveries = [pair.forth().next_arrival(), pair.back().next_arrival()];
            let timeouts = [pair.a.poll_timeout(), pair.b.poll_timeout()];
            if deliveries.into_iter().chain(timeouts).flatten().min().is_none_or(|next| next > end) {
                pair.now = end;
                return false;
            }
            pair.step();
        }
        panic!(
            "a peer's deadline stays in the past: {:?} {:?}",
            self.pair.a.poll_timeout(),
            self.pair.b.poll_timeout()
        );
    }

    pub(crate) fn run_for(&mut self, time: Duration) {
        self.run_until(time, |_| false);
    }

    /// Opens a connection; returns its ids at both peers.
    pub(crate) fn connect(&mut self) -> (ConnectionId, ConnectionId) {
        let to = self.pair.b_address;
        let id = self.pair.a.connect(self.now(), to).expect("a free slot");
        let connected = self.run_until(Duration::from_secs(15), |net| {
            net.client.contains(&OwnedEvent::Connected(id)) && connected(&net.server).is_some()
        });
        assert!(connected, "client: {:?}, server: {:?}", self.client, self.server);
        let server = connected_id(&self.server);
        self.client.clear();
        self.server.clear();
        (id, server)
    }
}

fn connected(events: &[OwnedEvent]) -> Option<ConnectionId> {
    events.iter().find_map(|event| if let OwnedEvent::Connected(id) = event { Some(*id) } else { None })
}

pub(crate) fn connected_id(events: &[OwnedEvent]) -> ConnectionId {
    connected(events).expect("an open connection")
}
