//! RakNet: messages over UDP, with optional reliability and ordering, compatible with C++ RakNet 4 and Minecraft
//! Bedrock.
//!
//! A [`Peer`] is an [`endpoint::Peer`](crate::endpoint::Peer) for RakNet; the module `endpoint` describes how to run
//! it. The layers, from bottom to top:
//!
//! - [`wire`](crate::wire) parses and serializes packets.
//! - `config`, `security`, `delivery`, `reason`, `stats` and `shared_state`, which is the state that all connections
//!   of a peer share.
//! - `connection` is the state machine for one remote peer.
//! - `peer` routes datagrams to connections and answers unconnected peers.

mod config;
pub(crate) mod connection;
pub(crate) mod delivery;
mod network_id;
mod peer;
mod reason;
#[cfg(feature = "secure")]
mod security;
mod shared_state;
mod stats;
pub mod wire;

pub use config::{
    Config, CongestionControl, ConnectOptions, CookiePolicy, DialledAddress, OutOfBand, ProtocolVersions,
    RakNet,
};
pub use connection::handshake::internal_addresses::InternalAddresses;
#[cfg(feature = "delay-based")]
pub use connection::{PathSample, PathWindow};
pub use delivery::{Channel, Delivery, Priority, Reliability};
pub use network_id::{NetworkId, NetworkIdGenerator};
pub use peer::{
    AddressPattern, BanList, BanListFull, FILTER_GROUPS, FilterGroup, MAX_BANS, MessageFilter,
    PatternSyntaxError,
};
pub use reason::{ConnectFailure, DisconnectReason, OutOfBandError, PingError, SetError};
#[cfg(feature = "secure")]
pub use security::{SecurePeer, Security};
pub use stats::{Amount, ConnectionStats, DropReason, Waiting};
pub use wire::offline::{PingScope, Refusal};
pub use wire::{Guid, PongFraming};

#[cfg(feature = "alloc")]
pub use crate::endpoint::Capacity;
pub use crate::endpoint::{
    Carrier, ConnectError, ConnectionId, ConnectionState, Direction, Hook, LogSink, Outcome, PacketLogger,
    PcapWriter, Progress, Receipt, SendError, Side, UnconnectedEvents, Verdict,
};

/// A peer that uses RakNet.
pub type Peer<'a> = crate::endpoint::Peer<'a, RakNet>;
/// The memory of a [`Peer`].
pub type Resources<const CONNECTIONS: usize, const BLOCKS: usize, const BLOCK_SIZE: usize> =
    crate::endpoint::Resources<RakNet, CONNECTIONS, BLOCKS, BLOCK_SIZE>;
/// An event of a [`Peer`].
pub type Event<'p> = crate::endpoint::Event<'p, RakNet>;
/// A received message, borrowed from the peer.
pub type Message<'p> = crate::endpoint::Message<'p, RakNet>;
/// The address, identity, side and state of a connection.
pub type ConnectionInfo = crate::endpoint::ConnectionInfo<RakNet>;
/// Counters of a [`Peer`].
pub type PeerStats = crate::endpoint::PeerStats<DropReason>;
/// A [`Peer`] with a hook for its datagrams and events.
pub type Hooked<'a, H> = crate::endpoint::Hooked<'a, RakNet, H>;
/// A log of datagrams as text lines.
pub type LineWriter<W> = crate::endpoint::LineWriter<RakNet, W>;
