//! RakNet over UDP sockets. The crate's root names everything here, too.
//!
//! The types are those of [`endpoint`](crate::endpoint) with [`RakNet`] for their protocol. What only RakNet can do is
//! here: pings, messages without a connection, passwords and bans, receipts and the progress of large messages.

mod admission;
mod connection;
mod error;
mod ping;
#[cfg(test)]
mod stall_tests;
mod unconnected;

pub use rakwire::raknet::{
    AddressPattern, BanListFull, Capacity, Channel, Config, ConnectFailure, ConnectOptions, ConnectionStats,
    CookiePolicy, Delivery, Direction, DisconnectReason, DropReason, Guid, Hook, OutOfBand, Outcome,
    PeerStats, PingScope, PongFraming, Priority, Progress, RakNet, Receipt, Reliability, SendError, SetError,
    Verdict,
};
pub use rakwire::wire::id;

pub use self::error::{OutOfBandError, PingError};
pub use crate::bind_error::BindError;
pub use crate::endpoint::UnconnectedKind;

/// A UDP socket with RakNet on it.
pub type Endpoint = crate::endpoint::Endpoint<RakNet>;
/// An open connection with another peer.
pub type Connection = crate::endpoint::Connection<RakNet>;
/// How an endpoint behaves, and how much memory it takes.
pub type Options = crate::endpoint::Options<RakNet>;
/// A message that arrived.
pub type Incoming = crate::endpoint::Incoming<Delivery>;
/// Why a connection could not be opened.
pub type ConnectError = crate::endpoint::ConnectError<ConnectFailure>;
/// Counters of an endpoint.
pub type EndpointStats = crate::endpoint::EndpointStats<RakNet>;
/// What a server answers to a ping.
pub type Pong = crate::endpoint::Pong<Guid>;
/// A message from a peer without a connection.
pub type Unconnected = crate::endpoint::Unconnected<Guid>;
