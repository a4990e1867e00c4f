//! RakNet: messages over UDP, in order or not, resent or not, with the peers of twenty years of games.
//!
//! A [`Peer`] is an [`endpoint::Peer`](crate::endpoint::Peer) that speaks RakNet; the endpoint says how it is run.
//!
//! The layers, from the bottom: [`wire`](crate::wire) knows bytes, `connection` knows one other peer, `responder`
//! answers those that are not connected, `routing` decides what a datagram is for.

mod admission;
mod amplification_budget;
mod bans;
#[cfg(feature = "secure")]
mod challenges;
#[cfg(not(feature = "secure"))]
#[path = "no_challenges.rs"]
mod challenges;
mod config;
pub(crate) mod connection;
mod cookieless;
pub(crate) mod delivery;
mod error;
mod features;
mod internal_addresses;
mod known_versions;
mod list_length;
#[cfg(feature = "server")]
mod listening;
mod loss_history;
mod message_filter;
mod network_id;
mod protocol;
mod reason;
mod requests;
mod responder;
mod routing;
#[cfg(feature = "secure")]
mod secure_state;
#[cfg(feature = "secure")]
mod security;
#[cfg(feature = "secure")]
mod server_key;
#[cfg(not(feature = "secure"))]
#[path = "no_server_key.rs"]
mod server_key;
mod state;
mod stats;
mod types;
#[cfg(feature = "unconnected")]
mod unconnected;
pub mod wire;

pub use bans::{AddressPattern, BanList, BanListFull, MAX_BANS, PatternSyntaxError};
pub use config::{Config, CongestionControl, CookiePolicy, DialledAddress, OutOfBand, ProtocolVersions};
#[cfg(feature = "delay-based")]
pub use connection::{PathSample, PathWindow};
pub use delivery::{Channel, Delivery, Priority, Reliability};
pub use error::{OutOfBandError, PingError, SetError};
pub use internal_addresses::InternalAddresses;
pub use message_filter::{FILTER_GROUPS, FilterGroup, MessageFilter};
pub use network_id::{NetworkId, NetworkIdGenerator};
pub use reason::{ConnectFailure, DisconnectReason};
#[cfg(feature = "secure")]
pub use security::{SecurePeer, Security};
pub use stats::{Amount, ConnectionStats, DropReason, Waiting};
pub use types::{ConnectOptions, RakNet};
pub use wire::offline::{PingScope, Refusal};
pub use wire::{Guid, PongFraming};

#[cfg(feature = "alloc")]
pub use crate::endpoint::Capacity;
pub use crate::endpoint::{
    Carrier, ConnectError, ConnectionId, ConnectionState, Direction, Hook, LogSink, Outcome, PacketLogger,
    PcapWriter, Progress, Receipt, SendError, Side, Verdict,
};

/// A peer that speaks RakNet.
pub type Peer<'a> = crate::endpoint::Peer<'a, RakNet>;
/// The memory of a [`Peer`].
pub type Resources<const CONNECTIONS: usize, const BLOCKS: usize, const BLOCK_SIZE: usize> =
    crate::endpoint::Resources<RakNet, CONNECTIONS, BLOCKS, BLOCK_SIZE>;
/// Something that happened at a [`Peer`].
pub type Event<'p> = crate::endpoint::Event<'p, RakNet>;
/// The bytes of a message.
pub type Message<'p> = crate::endpoint::Message<'p, RakNet>;
/// What is known of a connection.
pub type ConnectionInfo = crate::endpoint::ConnectionInfo<RakNet>;
/// Counters of a [`Peer`].
pub type PeerStats = crate::endpoint::PeerStats<DropReason>;
/// A [`Peer`] whose datagrams and events pass a hook.
pub type Hooked<'a, H> = crate::endpoint::Hooked<'a, RakNet, H>;
/// A log of datagrams in lines that people read.
pub type LineWriter<W> = crate::endpoint::LineWriter<RakNet, W>;
