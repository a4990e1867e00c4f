//! The endpoint, shared by both protocols: connections, events, hooks, plugins, memory and the run loop.
//!
//! A [`Peer`] manages any number of connections over one socket. It owns neither the socket nor a clock:
//!
//! - **in**: [`Peer::handle_datagram`], [`Peer::handle_timeout`], and the application's [`Peer::connect`],
//!   [`Peer::send`], [`Peer::disconnect`];
//! - **out**: [`Peer::poll_event`], [`Peer::poll_transmit`], [`Peer::poll_timeout`].
//!
//! Call input methods as needed. Then call `poll_event` and `poll_transmit` until they return `None`, and sleep until
//! `poll_timeout` or the next datagram. Polling late does no harm.
//!
//! The trait [`Protocol`] abstracts over the differences between the protocols. [`raknet`](crate::raknet) and
//! [`game_protocol`](crate::game_protocol) have aliases for all types here: `raknet::Peer<'a>` is `endpoint::Peer<'a,
//! RakNet>`.

#[cfg(all(feature = "alloc", feature = "server"))]
mod admission;
mod application;
mod event;
mod events;
mod hook;
mod incoming;
mod member;
mod packet_log;
mod peer;
mod plugin;
mod protocol;
mod resources;
#[cfg(feature = "alloc")]
mod send_queue;
mod tables;
mod types;

#[cfg(all(feature = "alloc", feature = "server"))]
pub use admission::{Admission, Client, Decision, SharedAdmission};
pub use event::{ConnectionInfo, Event, Message};
pub use hook::{Hook, Hooked, Injected, Verdict};
pub use incoming::{ClientLimits, Origin};
pub use packet_log::{LineWriter, LogSink, PacketLogger, PcapWriter};
pub use plugin::{
    AttachError, BySlot, MessageIds, MessageSender, Plugin, PluginHost, PluginKey, PluginStats,
};
pub use protocol::{Peer, Protocol, UnconnectedEvents};
#[cfg(feature = "alloc")]
pub use resources::Capacity;
pub use resources::Resources;
#[cfg(feature = "alloc")]
pub use send_queue::{QueueError, QueueTarget, Queued, SendQueue};
pub use types::{
    Carrier, ConnectError, ConnectionId, ConnectionState, Direction, DropReasons, Outcome, PartitionError,
    PeerStats, Progress, Receipt, RefuseReason, RefusedClient, SendError, Side,
};

pub(crate) use incoming::{Incoming, Rejection, Request};
pub(crate) use protocol::{
    Connection, ConnectionEvent, Context, Ending, Internals, MessageToSend, State, Storage, Unconnected,
    UnconnectedKind,
};
pub(crate) use resources::refill;
pub(crate) use tables::{ConnectionTable, Occupant, Slot};
pub(crate) use types::{MIN_STREAM_TIMEOUT, STATISTICS};
