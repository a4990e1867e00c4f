//! RakNet: messages over UDP, in order or not, resent or not, with the peers of twenty years of games.
//!
//! A [`Peer`] holds any number of connections, opened by itself or by others. It knows no socket and no clock:
//!
//! - **in**: [`Peer::handle_datagram`], [`Peer::handle_timeout`], and the application's [`Peer::connect`],
//!   [`Peer::send`], [`Peer::disconnect`], [`Peer::ping`];
//! - **out**: [`Peer::poll_event`], [`Peer::poll_transmit`], [`Peer::poll_timeout`].
//!
//! Call the methods of the first kind whenever there is reason to, then `poll_event` and `poll_transmit` until they
//! return nothing, then sleep until `poll_timeout` or the next datagram. Nothing breaks if output is taken late; it
//! waits.
//!
//! The layers, from the bottom: [`wire`](crate::wire) knows bytes, `connection` knows one other peer, `offline` answers
//! those that are not connected, [`Peer`] ties them to addresses.

mod amplification_budget;
mod bans;
mod config;
pub(crate) mod connection;
pub(crate) mod delivery;
mod event;
mod features;
mod hook;
mod message_filter;
mod network_id;
mod offline;
mod packet_log;
mod peer;
mod resources;
mod stats;
pub mod wire;

pub use bans::{AddressPattern, BadPattern, BanList, BanListFull, MAX_BANS};
pub use config::{
    Config, CongestionControl, CookiePolicy, DialledAddress, OutOfBand, ProtocolVersions, Resends,
};
pub use connection::{ConnectionState, SendError, Side};
pub use delivery::{Channel, Delivery, Priority, Reliability};
pub use event::{
    ConnectFailure, ConnectionId, Direction, DisconnectReason, Event, Message, Outcome, Progress, Receipt,
};
pub use hook::{Hook, Hooked, Verdict};
pub use message_filter::{FILTER_GROUPS, FilterGroup, MessageFilter};
pub use network_id::{NetworkId, NetworkIdGenerator};
pub use packet_log::{LineWriter, LogDirection, LogSink, PacketLogger, PcapWriter};
pub use peer::{ConnectError, ConnectOptions, ConnectionInfo, OutOfBandError, Peer, PingError, SetError};
#[cfg(feature = "alloc")]
pub use resources::Capacity;
pub use resources::Resources;
pub use stats::{Amount, ConnectionStats, DropReason, PeerStats, Waiting};
pub use wire::Guid;
pub use wire::offline::{PingScope, Refusal};
