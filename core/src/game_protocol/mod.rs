//! The Game Protocol: messages in chunks over UDP, reliable or not one by one, as the game "snow-fight" speaks it.
//!
//! A [`Peer`] holds any number of connections, opened by itself or by others. It has the verbs of
//! [`raknet::Peer`](crate::raknet::Peer):
//!
//! - **in**: [`Peer::handle_datagram`], [`Peer::handle_timeout`], and the application's [`Peer::connect`],
//!   [`Peer::send`], [`Peer::disconnect`];
//! - **out**: [`Peer::poll_event`], [`Peer::poll_transmit`], [`Peer::poll_timeout`].
//!
//! There is no order among messages: each is delivered when it is complete. There is no congestion control: what is
//! sent leaves at once. `docs/game-protocol.md` states the wire and where it differs from the original.
//!
//! Two peers in memory, whole:
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
mod desk;
mod event;
mod hook;
mod peer;
mod resources;
mod stats;
pub mod wire;

pub use config::{Config, Redial, Resend};
pub use connection::{ConnectionState, SendError, Side};
pub use event::{ConnectFailure, ConnectionId, DisconnectReason, Event, Message};
pub use hook::{Hook, Hooked, LineWriter};
pub use peer::{ConnectError, ConnectionInfo, Peer};
#[cfg(feature = "alloc")]
pub use resources::Capacity;
pub use resources::Resources;
pub use stats::{ConnectionStats, DropReason, PeerStats};
pub use wire::Reliability;

pub use crate::raknet::{LogDirection, LogSink, PacketLogger, PcapWriter, Verdict};
