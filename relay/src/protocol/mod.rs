//! What the relay knows of the protocol that a target speaks, without IO: which datagrams may pass, what changes in them,
//! and what is answered in the server's place.
//!
//! A flow of a target has one [`Awareness`]. Every datagram of the client goes through
//! [`Awareness::handle_client`] and every datagram of the server through [`Awareness::handle_server`]:
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Instant;
//!
//! use rakwire_relay::protocol::{Awareness, Change, Handshake, PongCache, ProtocolKind, Refusal, Verdict};
//!
//! let pongs = Arc::new(PongCache::default());
//! let now = Instant::now();
//! let mut flow = Awareness::new(ProtocolKind::GameProtocol, Handshake::default(), pongs, now);
//! // A packet of a connection passes once the server has answered the handshake, which is four bytes.
//! assert_eq!(flow.handle_client(now, &[5, 0, 0, 7, b'h', b'i']), Verdict::Drop(Refusal::NoHandshake));
//! assert_eq!(flow.handle_client(now, &[0x49, 0x9E, 0xD2, 0x67]), Verdict::Pass(Change::None));
//! assert_eq!(flow.handle_server(now, &[0xA1, 0xB2, 0xC3, 0xD4]), Change::None);
//! assert_eq!(flow.handle_client(now, &[5, 0, 0, 7, b'h', b'i']), Verdict::Pass(Change::None));
//! ```

mod awareness;
mod budget;
mod game_protocol;
mod kind;
mod mtu;
mod pongs;
mod raknet;
mod verdict;

pub use awareness::Awareness;
pub(crate) use budget::Budget;
pub use budget::Handshake;
pub use kind::{ProtocolKind, ProtocolKindSyntaxError};
pub use mtu::LARGEST_PAYLOAD;
pub(crate) use mtu::largest_behind;
pub use pongs::{PONG_LIFETIME, Pong, PongCache};
pub use verdict::{Change, Refusal, Verdict};
