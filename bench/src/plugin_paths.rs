//! Measures the cost of plugins. Two peers exchange messages without a hook, with an empty hook, with a host without
//! plugins, and with a host with one plugin.
//!
//! This module is separate from `hot_path`, because code that is generic over the peer would change how the compiler
//! optimises the other hot paths.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, Result};
use clap::ValueEnum;
use rakwire::endpoint::{Hook, MessageIds, Plugin, PluginHost};
use rakwire::raknet::{
    Capacity, Config, ConnectionId, Delivery, Event, Hooked, MessageFilter, Peer, RakNet, SendError,
};
use rakwire::wire::MAX_DATAGRAM;
use rakwire::{Instant, Machine};

/// The number of messages queued at once on each side.
const BATCH: usize = 128;
/// The length of a message.
const SIZE: usize = 100;
/// The capacity of a plugin host.
const PLUGINS: usize = 4;
/// The number and size of blocks of each peer, as in the other hot paths.
const BLOCKS: usize = 4_096;
const BLOCK: usize = 512;
/// The virtual time between two rounds, which is also the round-trip time.
const ROUND: Duration = Duration::from_millis(1);

const SERVER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 19_132);
const CLIENT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(10, 1, 0, 1)), 50_000);

/// The hook that both peers have while each sends 128 messages of 100 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PluginPath {
    /// No hook: the peers are called directly.
    #[value(name = "plugins_absent")]
    Absent,
    /// The hook `()`, which drivers use if the application has none.
    #[value(name = "plugins_hook_empty")]
    EmptyHook,
    /// A host without plugins.
    #[value(name = "plugins_host_empty")]
    EmptyHost,
    /// A host with a plugin for a message id that never arrives.
    #[value(name = "plugins_idle")]
    Idle,
    /// A host with the message filter, which inspects every message and lets all of them through.
    #[value(name = "plugins_filter")]
    Filter,
}

impl PluginPath {
    /// The number of messages in a repetition.
    pub(crate) const UNITS: u64 = 2 * BATCH as u64;
    /// The number of repetitions in a count.
    pub(crate) const REPETITIONS: u64 = 200;

    /// Runs the workload `repetitions` times.
    pub(crate) fn run(self, repetitions: u64) -> Result<()> {
        match self {
            Self::Absent => exchange(repetitions, Ok),
            Self::EmptyHook => exchange(repetitions, |peer| Ok(Hooked::new(peer, ()))),
            Self::EmptyHost => exchange(repetitions, |peer| {
                Ok(Hooked::new(peer, PluginHost::<MessageFilter<1>, PLUGINS>::new()))
            }),
            Self::Idle => exchange(repetitions, |peer| hosted(peer, Idle)),
            Self::Filter => exchange(repetitions, |peer| hosted(peer, MessageFilter::<1>::new())),
        }
    }
}

/// A plugin that handles only message id 0x85, which no peer sends.
struct Idle;

impl Plugin<RakNet> for Idle {
    fn message_ids(&self) -> MessageIds {
        MessageIds::of(&[0x85])
    }
}

fn hosted<T: Plugin<RakNet>>(
    peer: Peer<'static>,
    plugin: T,
) -> Result<Hooked<'static, PluginHost<T, PLUGINS>>> {
    let mut host = PluginHost::new();
    host.attach::<RakNet>(plugin)?;
    Ok(Hooked::new(peer, host))
}

/// The operations that a peer has in common with a hooked peer.
trait Side: Machine {
    fn send(&mut self, now: Instant, id: ConnectionId, message: &[u8]) -> Result<(), SendError>;

    fn poll_event(&mut self) -> Option<Event<'_>>;
}

impl Side for Peer<'static> {
    fn send(&mut self, now: Instant, id: ConnectionId, message: &[u8]) -> Result<(), SendError> {
        self.send(now, id, message, Delivery::RELIABLE_ORDERED).map(|_| ())
    }

    fn poll_event(&mut self) -> Option<Event<'_>> {
        self.poll_event()
    }
}

impl<H: Hook<RakNet>> Side for Hooked<'static, H> {
    fn send(&mut self, now: Instant, id: ConnectionId, message: &[u8]) -> Result<(), SendError> {
        self.send(now, id, message, Delivery::RELIABLE_ORDERED).map(|_| ())
    }

    fn poll_event(&mut self) -> Option<Event<'_>> {
        self.poll_event()
    }
}

/// A peer with its address and its connection to the other peer.
struct End<S> {
    side: S,
    address: SocketAddr,
    connection: Option<ConnectionId>,
    delivered: usize,
}

impl<S: Side> End<S> {
    fn new(side: S, address: SocketAddr) -> Self {
        Self { side, address, connection: None, delivered: 0 }
    }

    fn send(&mut self, now: Instant, message: &[u8]) -> Result<()> {
        let id = self.connection.context("the peer is not connected")?;
        Ok(self.side.send(now, id, message)?)
    }

    /// Handles due timeouts, and delivers all datagrams from this peer to `to`.
    fn transmit(&mut self, now: Instant, to: &mut Self, buffer: &mut [u8]) {
        if self.side.poll_timeout().is_some_and(|due| due <= now) {
            self.side.handle_timeout(now);
        }
        while let Some(transmit) = self.side.poll_transmit(now, buffer) {
            to.side.handle_datagram(now, self.address, transmit.payload);
        }
    }

    fn take_events(&mut self) {
        while let Some(event) = self.side.poll_event() {
            if let Event::Message { message, .. } = &event {
                self.delivered += usize::from(!message.is_empty());
            } else if let Event::Connected { id, .. } = event {
                self.connection = Some(id);
            }
        }
    }
}

/// A client and a server with the same kind of hook, and their virtual clock.
struct Pair<S> {
    client: End<S>,
    server: End<S>,
    now: Instant,
    buffer: Box<[u8]>,
}

impl<S: Side> Pair<S> {
    fn connected(side: impl Fn(Peer<'static>) -> Result<S>) -> Result<Self> {
        let now = Instant::from_micros(1_000_000);
        let capacity = Capacity { connections: 1, blocks: BLOCKS, block_size: BLOCK };
        let mut config = Config::new([1; 32]);
        config.max_incoming = 1;
        let server = Peer::with_capacity(capacity, config);
        let mut client = Peer::with_capacity(capacity, Config::new([2; 32]));
        client.connect(now, SERVER)?;
        let (client, server) = (End::new(side(client)?, CLIENT), End::new(side(server)?, SERVER));
        let mut pair = Self { client, server, now, buffer: vec![0; MAX_DATAGRAM].into() };
        while pair.client.connection.is_none() || pair.server.connection.is_none() {
            pair.round();
        }
        Ok(pair)
    }

    /// Sends one batch of messages in each direction; returns when all are delivered.
    fn exchange(&mut self, message: &[u8]) -> Result<()> {
        for _ in 0..BATCH {
            self.client.send(self.now, message)?;
            self.server.send(self.now, message)?;
        }
        let awaited = [&self.client, &self.server].map(|end| end.delivered + BATCH);
        while [self.client.delivered, self.server.delivered] != awaited {
            self.round();
        }
        Ok(())
    }

    fn round(&mut self) {
        self.client.transmit(self.now, &mut self.server, &mut self.buffer);
        self.server.take_events();
        self.server.transmit(self.now, &mut self.client, &mut self.buffer);
        self.client.take_events();
        self.now = self.now + ROUND;
    }
}

fn exchange<S: Side>(repetitions: u64, side: impl Fn(Peer<'static>) -> Result<S>) -> Result<()> {
    let mut pair = Pair::connected(side)?;
    for _ in 0..repetitions {
        pair.exchange(&[0x86; SIZE])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The difference between two rows is the cost of a hook only if every row delivers the same messages.
    #[test]
    fn all_messages_arrive_with_every_hook() {
        for path in PluginPath::value_variants() {
            path.run(3).unwrap();
        }
    }

    #[test]
    fn a_filter_sees_every_message() {
        let mut pair = Pair::connected(|peer| hosted(peer, MessageFilter::<1>::new())).unwrap();
        pair.exchange(&[0x86; SIZE]).unwrap();
        for end in [&pair.client, &pair.server] {
            let host = &end.side.hook;
            let key = host.keys().next().unwrap();
            assert_eq!(host.stats(key).unwrap().offered, BATCH as u64);
        }
    }
}
