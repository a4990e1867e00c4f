//! A secure server and its clients on a hostile path.
//!
//! The path delivers datagrams to the wrong peer, changes their sources and contents, and duplicates and delays them.
//! A client's message is delivered at most once, and only on the connection authenticated with the client's key. In the
//! end every client can connect.

use core::net::SocketAddr;
use core::time::Duration;

use rakwire::Instant;
use rakwire::raknet::{Capacity, Config, ConnectOptions, Delivery, Event, Guid, Peer, SecurePeer, Security};
use rakwire::secure::{PublicKey, ServerIdentity, ServerTrust, StaticKey};

use super::Kept;

const CLIENTS: usize = 3;
/// Fewer than the source addresses, so that half-open connections evict each other.
const PLACES: usize = 2;
const SERVER: usize = CLIENTS;
/// A time without datagrams, longer than any timeout.
const LULL: Duration = Duration::from_secs(60);

/// A datagram in flight: the indices of source and destination, and the bytes.
struct UnderWay {
    from: usize,
    to: usize,
    bytes: Vec<u8>,
}

struct World {
    /// The clients, and the server as the last peer.
    peers: Vec<Peer<'static>>,
    now: Instant,
    under_way: Vec<UnderWay>,
    /// The number of messages that each client has sent, and the number delivered.
    sent: [u8; CLIENTS],
    arrived: Vec<(usize, u8)>,
}

pub(super) fn address(place: usize) -> SocketAddr {
    ([192, 0, 2, 1 + place as u8], 19_132).into()
}

fn key(place: usize) -> StaticKey {
    StaticKey::from_bytes([0x10 + place as u8; 32])
}

fn public(place: usize) -> PublicKey {
    key(place).public()
}

fn peer(place: usize) -> Peer<'static> {
    let mut security = Security::new([0x40 + place as u8; 32]);
    let mut config = Config::new([0x80 + place as u8; 32]);
    config.guid = Guid(1 + place as u64);
    if place == SERVER {
        let mut identity = ServerIdentity::new(key(SERVER));
        identity.requires_security = true;
        identity.requires_identity = true;
        security.server = Some(identity);
        config.max_incoming = PLACES as u16;
    } else {
        security.identity = Some(key(place));
    }
    config.security = Some(security);
    Peer::with_capacity(Capacity { connections: PLACES, blocks: 512, block_size: 256 }, config)
}

/// Executes a run; each step takes two bytes of the input.
///
/// # Errors
/// The violated guarantee.
pub fn run(input: &[u8]) -> Kept {
    let mut world = World {
        peers: (0..=CLIENTS).map(peer).collect(),
        now: Instant::from_micros(1_000_000),
        under_way: Vec::new(),
        sent: [0; CLIENTS],
        arrived: Vec::new(),
    };
    for step in input.chunks_exact(2).take(200) {
        world.step(step[0], usize::from(step[1]))?;
    }
    world.under_way.clear();
    world.end()
}

impl World {
    fn step(&mut self, action: u8, pick: usize) -> Kept {
        let client = pick % CLIENTS;
        match action % 8 {
            0 => self.dial(client),
            1 => self.say(client),
            2 => self.hang_up(client),
            3 => self.pass_time(Duration::from_millis(1 + 40 * pick as u64)),
            4..6 => self.deliver(pick, 0, usize::from(action >> 3) % 4),
            6 => self.deliver(pick, 1 << (action >> 5), 0),
            _ => self.duplicate(pick),
        }
        self.transmit();
        self.take_events()
    }

    fn dial(&mut self, client: usize) {
        let trust = Some(ServerTrust::Key(public(SERVER)));
        let options = ConnectOptions { trust, ..ConnectOptions::default() };
        // The client may be connected already.
        let _ = self.peers[client].connect_with(self.now, address(SERVER), &options);
    }

    fn say(&mut self, client: usize) {
        let id = self.peers[client].connections().next();
        let Some(id) = id.filter(|_| self.sent[client] < u8::MAX) else { return };
        let message = [0x86, client as u8, self.sent[client]];
        let sent = self.peers[client].send(self.now, id, &message, Delivery::RELIABLE);
        self.sent[client] += u8::from(sent.is_ok());
    }

    fn hang_up(&mut self, client: usize) {
        let id = self.peers[client].connections().next();
        if let Some(id) = id {
            self.peers[client].disconnect(self.now, id);
        }
    }

    fn pass_time(&mut self, time: Duration) {
        self.now = self.now + time;
        for peer in &mut self.peers {
            peer.handle_timeout(self.now);
        }
    }

    /// Delivers a datagram, with the bits `changed` inverted in one byte.
    ///
    /// `detour` 1 changes the source address or the receiving client, and 2 returns the datagram to its sender.
    fn deliver(&mut self, pick: usize, changed: u8, detour: usize) {
        if self.under_way.is_empty() {
            return;
        }
        let UnderWay { mut from, mut to, mut bytes } = self.under_way.remove(pick % self.under_way.len());
        match detour {
            1 if to == SERVER => from = (from + 1) % CLIENTS,
            1 => to = (to + 1) % CLIENTS,
            2 => (from, to) = (to, from),
            _ => {}
        }
        let at = pick % bytes.len();
        bytes[at] ^= changed;
        self.peers[to].handle_datagram(self.now, address(from), &bytes);
    }

    fn duplicate(&mut self, pick: usize) {
        if let Some(UnderWay { from, to, bytes }) = self.under_way.get(pick % self.under_way.len().max(1)) {
            let again = UnderWay { from: *from, to: *to, bytes: bytes.clone() };
            self.under_way.push(again);
        }
    }

    fn transmit(&mut self) {
        let mut buffer = [0; 2_048];
        for (from, peer) in self.peers.iter_mut().enumerate() {
            while let Some(transmit) = peer.poll_transmit(self.now, &mut buffer) {
                let to = (0..=CLIENTS).find(|place| address(*place) == transmit.to);
                let bytes = transmit.payload.to_vec();
                self.under_way.extend(to.map(|to| UnderWay { from, to, bytes }));
            }
        }
        // Datagrams beyond the capacity of the path are lost.
        let excess = self.under_way.len().saturating_sub(64);
        self.under_way.drain(..excess);
    }

    fn take_events(&mut self) -> Kept {
        for client in &mut self.peers[..SERVER] {
            while client.poll_event().is_some() {}
        }
        while let Some(event) = self.peers[SERVER].poll_event() {
            let (id, said) = if let Event::Connected { id, .. } = event {
                (id, None)
            } else if let Event::Message { id, message, .. } = event {
                (id, Some(message.to_vec()))
            } else {
                continue;
            };
            if self.peers[SERVER].connection(id).is_none() {
                continue;
            }
            let shown = self.peers[SERVER].secure_peer(id);
            let Some(SecurePeer::Client(Some(shown))) = shown else {
                return Err(format!(
                    "an open connection has the peer {shown:?} instead of a client's identity"
                ));
            };
            let said = said.as_deref().map(|said| (usize::from(said[1]), said[2]));
            let Some((client, number)) = said else { continue };
            if shown.key != public(client) {
                return Err(format!(
                    "a message of client {client} arrived on the connection of {:?}",
                    shown.key
                ));
            }
            if number >= self.sent[client] || self.arrived.contains(&(client, number)) {
                return Err(format!("message {number} of client {client} arrived twice, or was not sent"));
            }
            self.arrived.push((client, number));
        }
        Ok(())
    }

    /// Closes all connections; then checks that each client can connect and send a message over a lossless path.
    fn end(&mut self) -> Kept {
        for client in 0..CLIENTS {
            (0..CLIENTS).for_each(|client| self.hang_up(client));
            for _ in 0..LULL.as_secs() {
                self.pass_time(Duration::from_secs(1));
                self.transmit();
                self.under_way.clear();
                self.take_events()?;
            }
            self.dial(client);
            let before = self.sent[client];
            for _ in 0..400 {
                self.transmit();
                if self.under_way.is_empty() {
                    self.pass_time(Duration::from_millis(50));
                } else {
                    self.deliver(0, 0, 0);
                }
                if self.sent[client] == before {
                    self.say(client);
                }
                self.take_events()?;
            }
            if self.sent[client] == before || !self.arrived.contains(&(client, before)) {
                return Err(format!("client {client} cannot connect"));
            }
        }
        Ok(())
    }
}
