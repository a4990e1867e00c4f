//! The connection graph, which uses the messages of C++ RakNet's plugin of that name.

use core::net::SocketAddr;

use heapless::Vec;
use rakwire::endpoint::{BySlot, ConnectionId, MessageIds, MessageSender, Plugin, Side, Verdict};
use rakwire::raknet::{Delivery, DisconnectReason, Guid, RakNet};
use rakwire::wire::id;
use rakwire::wire::notice::{Notice, RemotePeer, RemotePeers};
use rakwire::wire::{Reader, Wire, Writer};
use rakwire::{Chunks, Instant};

use crate::bytes;

/// The message ids of the connection graph.
pub const GRAPH_IDS: [u8; 3] =
    [id::REMOTE_DISCONNECTION_NOTIFICATION, id::REMOTE_CONNECTION_LOST, id::REMOTE_NEW_INCOMING_CONNECTION];

/// The value for an unknown round-trip time, as in C++ RakNet.
pub const UNKNOWN_PING: u16 = u16::MAX;

/// The maximum number of connections per sent message. Longer lists are split into several messages.
const ENTRIES: usize = 16;

/// The maximum length of a received message in bytes.
const MAX_LENGTH: usize = 5 + 64 * RemotePeer::MAX_SIZE;

/// Counters of the graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GraphStats {
    /// Messages that are malformed or too long.
    pub malformed: u64,
    /// Connections of other peers that are ignored because the capacity is reached.
    pub dropped: u64,
    /// Connections that are ignored because the plugin has fewer slots than the peer has connections.
    pub over_capacity: u64,
}

/// A connection of this peer that was announced to another peer.
#[derive(Clone, Copy, Debug)]
struct Announced {
    id: ConnectionId,
    address: SocketAddr,
    guid: Guid,
    /// True if the connection timed out.
    is_lost: bool,
}

/// A connected peer.
#[derive(Debug)]
struct Node<const PEERS: usize> {
    guid: Guid,
    address: SocketAddr,
    remotes: Vec<RemotePeer, PEERS>,
    announced: Vec<Announced, PEERS>,
}

/// The connection graph plugin.
///
/// It notifies each peer of this peer's other connections, and stores the connections that each peer reports.
/// `PEERS` is the maximum number of connections of this peer, and the number stored for each other peer.
#[derive(Debug)]
pub struct ConnectionGraph<const PEERS: usize> {
    nodes: BySlot<Node<PEERS>, PEERS>,
    delivery: Delivery,
    is_due: bool,
    stats: GraphStats,
}

impl<const PEERS: usize> ConnectionGraph<PEERS> {
    /// Creates an empty graph. Its messages use reliable ordered delivery on channel 0, as in C++ RakNet.
    #[must_use]
    pub const fn new() -> Self {
        let stats = GraphStats { malformed: 0, dropped: 0, over_capacity: 0 };
        Self { nodes: BySlot::new(), delivery: Delivery::RELIABLE_ORDERED, is_due: false, stats }
    }

    /// Returns the connected peers and their addresses.
    pub fn peers(&self) -> impl Iterator<Item = (Guid, SocketAddr)> {
        self.nodes.iter().map(|(_, node)| (node.guid, node.address))
    }

    /// Returns true if a peer is connected to this one.
    #[must_use]
    pub fn is_connected(&self, guid: Guid) -> bool {
        self.nodes.iter().any(|(_, node)| node.guid == guid)
    }

    /// Returns the connections that a connected peer has reported.
    #[must_use]
    pub fn connections_of(&self, guid: Guid) -> &[RemotePeer] {
        self.nodes.iter().find(|(_, node)| node.guid == guid).map_or(&[], |(_, node)| &node.remotes)
    }

    /// Returns true if at least one of two other peers reports a connection to the other.
    #[must_use]
    pub fn are_connected(&self, a: Guid, b: Guid) -> bool {
        let reports = |a, b| self.connections_of(a).iter().any(|remote| remote.guid == b);
        reports(a, b) || reports(b, a)
    }

    /// Returns the connections that other peers have reported. A connection reported by both of its peers appears
    /// twice.
    pub fn remotes(&self) -> impl Iterator<Item = &RemotePeer> {
        self.nodes.iter().flat_map(|(_, node)| &node.remotes)
    }

    /// Returns the counters.
    #[must_use]
    pub const fn stats(&self) -> GraphStats {
        self.stats
    }

    /// Handles a message. Returns the peer that it reports as disconnected, if any.
    pub(super) fn receive(&mut self, from: ConnectionId, message: &dyn Chunks) -> Option<Guid> {
        let mut buffer = [0; MAX_LENGTH];
        let notice =
            bytes::copy(message, &mut buffer).and_then(|bytes| Notice::read(&mut Reader::new(bytes)).ok());
        let Some(notice) = notice else {
            self.stats.malformed = self.stats.malformed.saturating_add(1);
            return None;
        };
        let node = self.nodes.get_mut(from)?;
        match notice {
            Notice::RemoteConnected { peers } => {
                let dropped = peers.iter().filter(|peer| !node.learn(*peer)).count();
                self.stats.dropped = self.stats.dropped.saturating_add(dropped as u64);
            }
            Notice::RemoteDisconnected { guid, .. } => {
                node.remotes.retain(|remote| remote.guid != guid);
                return Some(guid);
            }
            Notice::RemoteLost { guid, .. } => node.remotes.retain(|remote| remote.guid != guid),
            Notice::Timestamp { .. } | Notice::Advertise { .. } | _ => {}
        }
        None
    }
}

impl<const PEERS: usize> Node<PEERS> {
    /// Stores a connection of this peer. Returns false if the capacity is reached.
    fn learn(&mut self, remote: RemotePeer) -> bool {
        if let Some(known) = self.remotes.iter_mut().find(|known| known.guid == remote.guid) {
            *known = remote;
            return true;
        }
        self.remotes.push(remote).is_ok()
    }

    /// Sends pending changes to this peer. Returns false if some changes could not be sent.
    fn send_changes(&mut self, peers: &[Announced], mut send: impl FnMut(&[u8]) -> bool) -> bool {
        let mut is_sent = true;
        self.announced.retain(|notified| {
            let is_open = peers.iter().any(|peer| peer.id == notified.id);
            let is_kept = is_open || !is_sent || !write(&notified.end(), &mut send);
            is_sent &= is_open || !is_kept;
            is_kept
        });
        let mut fresh: Vec<Announced, PEERS> = Vec::new();
        let unknown =
            peers.iter().filter(|peer| self.announced.iter().all(|notified| notified.id != peer.id));
        fresh.extend(unknown.take(PEERS).copied());
        for some in fresh.chunks(ENTRIES) {
            if !is_sent {
                return false;
            }
            let entry =
                |peer: &Announced| RemotePeer { address: peer.address, guid: peer.guid, ping: UNKNOWN_PING };
            let mut buffer = [0; ENTRIES * RemotePeer::MAX_SIZE];
            let encoded = RemotePeers::encode(some.iter().map(entry), &mut buffer);
            is_sent = encoded.is_ok_and(|peers| write(&Notice::RemoteConnected { peers }, &mut send));
            if is_sent {
                self.announced.extend(some.iter().copied());
            }
        }
        is_sent
    }
}

impl Announced {
    /// Returns the notice about the disconnect of this connection.
    const fn end(&self) -> Notice<'static> {
        let Self { address, guid, .. } = *self;
        if self.is_lost {
            Notice::RemoteLost { address, guid }
        } else {
            Notice::RemoteDisconnected { address, guid }
        }
    }
}

fn write(notice: &Notice<'_>, send: &mut impl FnMut(&[u8]) -> bool) -> bool {
    let mut buffer = [0; 5 + ENTRIES * RemotePeer::MAX_SIZE];
    let mut writer = Writer::new(&mut buffer);
    notice.write(&mut writer).is_ok() && send(writer.finish())
}

impl<const PEERS: usize> Default for ConnectionGraph<PEERS> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const PEERS: usize> Plugin<RakNet> for ConnectionGraph<PEERS> {
    fn message_ids(&self) -> MessageIds {
        MessageIds::of(&GRAPH_IDS)
    }

    fn on_connected(&mut self, _: Instant, id: ConnectionId, remote: SocketAddr, guid: Guid, _: Side) {
        if self.nodes.get(id).is_none() {
            let node = Node { guid, address: remote, remotes: Vec::new(), announced: Vec::new() };
            let is_kept = self.nodes.insert(id, node);
            self.is_due |= is_kept;
            self.stats.over_capacity = self.stats.over_capacity.saturating_add(u64::from(!is_kept));
        }
    }

    fn on_disconnected(&mut self, _: Instant, id: ConnectionId, reason: DisconnectReason) {
        self.is_due |= self.nodes.remove(id).is_some();
        let announced = self.nodes.iter_mut().flat_map(|(_, node)| &mut node.announced);
        for ended in announced.filter(|announced| announced.id == id) {
            ended.is_lost = reason == DisconnectReason::Lost;
        }
    }

    fn on_message(&mut self, _: Instant, id: ConnectionId, _: Delivery, message: &dyn Chunks) -> Verdict {
        self.receive(id, message);
        Verdict::Drop
    }

    fn update(&mut self, _: Instant, sender: &mut dyn MessageSender<RakNet>) {
        let mut peers: Vec<Announced, PEERS> = Vec::new();
        peers.extend(self.nodes.iter().map(|(id, node)| Announced {
            id,
            address: node.address,
            guid: node.guid,
            is_lost: false,
        }));
        let mut is_all_sent = true;
        for (id, node) in self.nodes.iter_mut() {
            let mut others = peers.clone();
            others.retain(|peer| peer.id != id);
            is_all_sent &= node.send_changes(&others, |bytes| sender.send(id, bytes, self.delivery).is_ok());
        }
        self.is_due = !is_all_sent;
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.is_due.then_some(Instant::ZERO)
    }
}
