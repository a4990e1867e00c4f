//! Two peers that connect to each other, with secure or plain attempts and any order of their datagrams.
//!
//! A secure attempt never opens a plain connection. Once all datagrams are delivered, every attempt has succeeded or
//! failed.

use rakwire::Instant;
use rakwire::raknet::{
    Capacity, Config, ConnectError, ConnectOptions, ConnectionId, Event, Guid, Peer, Security,
};
use rakwire::secure::{ServerIdentity, ServerTrust, StaticKey};

use super::Kept;
use super::secure_peers::address;

const NOW: Instant = Instant::from_micros(1_000_000);
/// The maximum number of steps, which is more than the number of datagrams of two handshakes.
const LIMIT: usize = 200;

/// The three cases; true if the peer requests a secure connection.
const WISHES: [[bool; 2]; 3] = [[true, false], [false, true], [true, true]];

struct Dialler {
    peer: Peer<'static>,
    requires_keys: bool,
    /// The peer's own attempt; `None` if it failed or was never started.
    attempt: Option<ConnectionId>,
    is_open: bool,
}

fn key() -> StaticKey {
    StaticKey::from_bytes([7; 32])
}

fn dialler(place: usize, requires_keys: bool) -> Dialler {
    let mut security = Security::new([0x40 + place as u8; 32]);
    security.server = Some(ServerIdentity::new(key()));
    let mut config = Config::new([0x80 + place as u8; 32]);
    config.guid = Guid(1 + place as u64);
    config.max_incoming = 2;
    config.security = Some(security);
    let peer = Peer::with_capacity(Capacity { connections: 2, blocks: 64, block_size: 256 }, config);
    Dialler { peer, requires_keys, attempt: None, is_open: false }
}

/// Runs each case; each byte selects a datagram to deliver, or makes the second peer connect.
///
/// # Errors
/// The violated guarantee.
pub fn run(input: &[u8]) -> Kept {
    WISHES.iter().try_for_each(|wishes| {
        World::new(*wishes).run(input).map_err(|broken| format!("{wishes:?}: {broken}"))
    })
}

struct World {
    diallers: [Dialler; 2],
    /// The receiver and the bytes of each datagram in flight.
    under_way: Vec<(usize, Vec<u8>)>,
}

impl World {
    fn new([first, second]: [bool; 2]) -> Self {
        Self { diallers: [dialler(0, first), dialler(1, second)], under_way: Vec::new() }
    }

    fn run(&mut self, input: &[u8]) -> Kept {
        self.dial(0)?;
        let (mut picks, mut has_dialled) = (input.iter().map(|byte| usize::from(*byte)), false);
        for _ in 0..LIMIT {
            let pick = picks.next().unwrap_or_default();
            let choices = self.under_way.len() + usize::from(!has_dialled);
            if choices == 0 {
                return self.diallers.iter().try_for_each(Dialler::is_over);
            }
            // Without further bytes the second peer connects immediately, and datagrams are delivered in order.
            match pick % choices {
                0 if !has_dialled => {
                    has_dialled = true;
                    self.dial(1)?;
                }
                at => self.deliver(at - usize::from(!has_dialled))?,
            }
        }
        Err("the handshakes exchange datagrams endlessly".into())
    }

    fn dial(&mut self, place: usize) -> Kept {
        let dialler = &mut self.diallers[place];
        let trust = dialler.requires_keys.then(|| ServerTrust::Key(key().public()));
        let options = ConnectOptions { trust, ..ConnectOptions::default() };
        dialler.attempt = match dialler.peer.connect_with(NOW, address(1 - place), &options) {
            Ok(id) => Some(id),
            // The first peer's attempt may already have opened the connection.
            Err(ConnectError::AlreadyConnected) if place == 1 => None,
            Err(error) => return Err(format!("peer {place} cannot connect: {error}")),
        };
        self.settle()
    }

    fn deliver(&mut self, at: usize) -> Kept {
        let (to, bytes) = self.under_way.remove(at);
        self.diallers[to].peer.handle_datagram(NOW, address(1 - to), &bytes);
        self.settle()
    }

    /// Polls the datagrams and events of both peers.
    fn settle(&mut self) -> Kept {
        let mut buffer = [0; 2_048];
        for (place, dialler) in self.diallers.iter_mut().enumerate() {
            while let Some(transmit) = dialler.peer.poll_transmit(NOW, &mut buffer) {
                self.under_way.push((1 - place, transmit.payload.to_vec()));
            }
            dialler.take_events()?;
        }
        Ok(())
    }
}

impl Dialler {
    fn take_events(&mut self) -> Kept {
        while let Some(event) = self.peer.poll_event() {
            if let Event::Connected { id, .. } = event {
                self.on_connected(id)?;
            } else if let Event::ConnectFailed { id, .. } | Event::Disconnected { id, .. } = event {
                self.attempt = self.attempt.filter(|attempt| *attempt != id);
            }
        }
        Ok(())
    }

    fn on_connected(&mut self, id: ConnectionId) -> Kept {
        if self.attempt != Some(id) {
            return Ok(());
        }
        self.is_open = true;
        let has_keys = self.peer.secure_peer(id).is_some();
        if has_keys == self.requires_keys {
            return Ok(());
        }
        Err(format!("requested keys: {}, connection has keys: {has_keys}", self.requires_keys))
    }

    /// Checks that the attempt has succeeded or failed. No datagram is lost, so it must not wait for a timer.
    fn is_over(&self) -> Kept {
        if self.attempt.is_none() || self.is_open {
            return Ok(());
        }
        Err(format!("an attempt neither succeeded nor failed; requested keys: {}", self.requires_keys))
    }
}
