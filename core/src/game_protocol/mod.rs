//! The Game Protocol: unordered messages in chunks over UDP, each reliable or unreliable.
//!
//! It is the transport of the game *snow-fight*. A [`Peer`] is an [`endpoint::Peer`](crate::endpoint::Peer) for this
//! protocol; the module `endpoint` describes how to run it.
//!
//! Each message is delivered as soon as it is complete. There is no congestion control: everything is sent
//! immediately. docs/game-protocol.md specifies the wire format and the differences from the original implementation.
//!
//! A complete example with two peers in memory:
//!
//! ```
//! use rakwire::Instant;
//! use rakwire::game_protocol::{Config, Event, Peer, Reliability, Resources, wire::MAX_PACKET};
//!
//! let (mut a, mut b) = (Resources::<1, 32, 128>::new(), Resources::<1, 32, 128>::new());
//! let mut server_config = Config::new([2; 32]); // 32 random bytes in a real program
//! server_config.max_incoming = 1;
//! let mut client = Peer::new(&mut a, Config::new([1; 32]));
//! let mut server = Peer::new(&mut b, server_config);
//! let (client_address, server_address) = ("192.0.2.1:1".parse()?, "192.0.2.2:2".parse()?);
//!
//! let now = Instant::ZERO;
//! client.connect(now, server_address)?;
//! let mut buffer = [0; MAX_PACKET];
//! let text = 'running: loop {
//!     let mut greet = None;
//!     while let Some(event) = client.poll_event() {
//!         if let Event::Connected { id, .. } = event {
//!             greet = Some(id);
//!         }
//!     }
//!     if let Some(id) = greet {
//!         client.send(now, id, b"hello", Reliability::Reliable)?;
//!     }
//!     while let Some(event) = server.poll_event() {
//!         if let Event::Message { message, .. } = event {
//!             break 'running message.chunks().flatten().copied().collect::<Vec<u8>>();
//!         }
//!     }
//!     while let Some(transmit) = client.poll_transmit(now, &mut buffer) {
//!         server.handle_datagram(now, client_address, transmit.payload);
//!     }
//!     while let Some(transmit) = server.poll_transmit(now, &mut buffer) {
//!         client.handle_datagram(now, server_address, transmit.payload);
//!     }
//! };
//! assert_eq!(text, b"hello");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod config;
pub(crate) mod connection;
mod protocol;
mod responder;
pub mod wire;

pub use config::{
    Config, ConnectFailure, ConnectionStats, DisconnectReason, DropReason, GameProtocol, Redial,
    ResendInterval,
};
pub use wire::Reliability;

#[cfg(feature = "alloc")]
pub use crate::endpoint::Capacity;
pub use crate::endpoint::{
    Carrier, ConnectError, ConnectionId, ConnectionState, Direction, Hook, LogSink, PacketLogger, PcapWriter,
    Receipt, SendError, Side, Verdict,
};

/// A peer of the Game Protocol.
pub type Peer<'a> = crate::endpoint::Peer<'a, GameProtocol>;
/// The memory of a [`Peer`].
pub type Resources<const CONNECTIONS: usize, const BLOCKS: usize, const BLOCK_SIZE: usize> =
    crate::endpoint::Resources<GameProtocol, CONNECTIONS, BLOCKS, BLOCK_SIZE>;
/// An event of a [`Peer`].
pub type Event<'p> = crate::endpoint::Event<'p, GameProtocol>;
/// A received message, borrowed from the peer.
pub type Message<'p> = crate::endpoint::Message<'p, GameProtocol>;
/// The address, identity, side and state of a connection.
pub type ConnectionInfo = crate::endpoint::ConnectionInfo<GameProtocol>;
/// Counters of a [`Peer`].
pub type PeerStats = crate::endpoint::PeerStats<DropReason>;
/// A [`Peer`] with a hook for its datagrams and events.
pub type Hooked<'a, H> = crate::endpoint::Hooked<'a, GameProtocol, H>;
/// A log of datagrams as text lines.
pub type LineWriter<W> = crate::endpoint::LineWriter<GameProtocol, W>;
