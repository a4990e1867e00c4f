//! RakNet: messages over UDP, ordered or not, reliable or not, compatible with two decades of games.
//!
//! A [`Peer`] is an [`endpoint::Peer`](crate::endpoint::Peer) that uses RakNet; the module `endpoint` describes how
//! to run it. The layers, from the bottom: [`wire`](crate::wire) encodes and decodes bytes. Above it are configuration,
//! security, deliveries, reasons and counters, one file each, and `shared_state`, which all connections of a peer
//! share. `connection` handles one remote peer. `peer` is above connections: it answers peers without a connection and
//! decides which connection a datagram belongs to.

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
    PcapWriter, Progress, Receipt, SendError, Side, Verdict,
};

/// A peer that uses RakNet.
pub type Peer<'a> = crate::endpoint::Peer<'a, RakNet>;
/// The memory of a [`Peer`].
pub type Resources<const CONNECTIONS: usize, const BLOCKS: usize, const BLOCK_SIZE: usize> =
    crate::endpoint::Resources<RakNet, CONNECTIONS, BLOCKS, BLOCK_SIZE>;
/// Something that happened at a [`Peer`].
pub type Event<'p> = crate::endpoint::Event<'p, RakNet>;
/// The bytes of a message.
pub type Message<'p> = crate::endpoint::Message<'p, RakNet>;
/// The addresses, the side and the state of a connection.
pub type ConnectionInfo = crate::endpoint::ConnectionInfo<RakNet>;
/// Counters of a [`Peer`].
pub type PeerStats = crate::endpoint::PeerStats<DropReason>;
/// A [`Peer`] that passes its datagrams and events through a hook.
pub type Hooked<'a, H> = crate::endpoint::Hooked<'a, RakNet, H>;
/// A log of datagrams in human-readable lines.
pub type LineWriter<W> = crate::endpoint::LineWriter<RakNet, W>;
