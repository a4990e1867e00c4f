//! RakNet over UDP sockets. Most of it is also re-exported at the root of the crate.
//!
//! The types are aliases of those in [`endpoint`](crate::endpoint). Only RakNet has pings, messages without a connection,
//! passwords, bans, receipts, and the progress of large messages.

mod admission;
mod connection;
mod error;
mod ping;
#[cfg(feature = "ring")]
mod ring_cipher;
mod security;
#[cfg(test)]
mod stall_tests;
mod unconnected;
mod used_tokens;

pub use rakwire::raknet::{
    AddressPattern, Amount, BanListFull, Capacity, Channel, Config, ConnectFailure, ConnectOptions,
    ConnectionId, ConnectionStats, CookiePolicy, Delivery, Direction, DisconnectReason, DropReason,
    FilterGroup, Guid, Hook, LineWriter, LogSink, MessageFilter, NetworkId, NetworkIdGenerator, OutOfBand,
    Outcome, PacketLogger, PcapWriter, PeerStats, PingScope, PongFraming, Priority, Progress, RakNet,
    Receipt, Refusal, Reliability, SecurePeer, Security, SendError, SetError, Verdict, Waiting,
};
pub use rakwire::wire::id;

pub use self::error::{OutOfBandError, PingError};
#[cfg(feature = "ring")]
pub use self::ring_cipher::RingCipher;
pub use self::used_tokens::UsedTokenTable;
pub use crate::bind_error::BindError;
pub use crate::endpoint::UnconnectedKind;

/// A UDP socket with RakNet.
pub type Endpoint = crate::endpoint::Endpoint<RakNet>;
/// An open connection with another peer.
pub type Connection = crate::endpoint::Connection<RakNet>;
/// A client that asks for a connection, and has got none yet.
pub type Incoming = crate::endpoint::Incoming<RakNet>;
/// The options of an endpoint.
pub type Options = crate::endpoint::Options<RakNet>;
/// A received message.
pub type Message = crate::endpoint::Message<Delivery>;
/// Why a connection could not be opened.
pub type ConnectError = crate::endpoint::ConnectError<ConnectFailure>;
/// The counters of an endpoint.
pub type EndpointStats = crate::endpoint::EndpointStats<RakNet>;
/// The reply of a server to a ping.
pub type Pong = crate::endpoint::Pong<Guid>;
/// A message from a peer without a connection.
pub type Unconnected = crate::endpoint::Unconnected<Guid>;
