//! Reliable UDP for games from one `no_std` core, for servers, browsers and microcontrollers.
//!
//! It implements RakNet and the Game Protocol, the transport of the game *snow-fight* (docs/game-protocol.md).
//!
//! The crate is *sans-IO*: it uses no socket, no clock and, without the feature `alloc`, no allocator. The caller
//! passes in datagrams and the current time, and takes out datagrams, events and the next deadline. The same code
//! therefore runs under tokio, in WebAssembly, on a microcontroller, and in virtual time in tests.
//!
//! # The run loop
//!
//! Call any methods of a peer. Then drain its events, drain its datagrams, and sleep until its timeout or the next
//! datagram. A complete example with two peers in memory:
//!
//! ```
//! use rakwire::Instant;
//! use rakwire::raknet::{Config, Delivery, Event, Peer, Resources};
//!
//! // All memory of the client and the server: one connection each, and 32 blocks of 128 bytes for its messages.
//! let (mut a, mut b) = (Resources::<1, 32, 128>::new(), Resources::<1, 32, 128>::new());
//! let mut server_config = Config::new([2; 32]); // 32 random bytes in a real program
//! server_config.max_incoming = 1;
//! let mut client = Peer::new(&mut a, Config::new([1; 32]));
//! let mut server = Peer::new(&mut b, server_config);
//! let (client_address, server_address) = ("192.0.2.1:1".parse()?, "192.0.2.2:2".parse()?);
//!
//! let mut now = Instant::ZERO;
//! client.connect(now, server_address)?;
//! let mut buffer = [0; rakwire::wire::MAX_DATAGRAM];
//! let text = 'running: loop {
//!     // Handle all events …
//!     let mut greet = None;
//!     while let Some(event) = client.poll_event() {
//!         if let Event::Connected { id, .. } = event {
//!             greet = Some(id);
//!         }
//!     }
//!     if let Some(id) = greet {
//!         client.send(now, id, b"\xFEhello", Delivery::RELIABLE_ORDERED)?;
//!     }
//!     while let Some(event) = server.poll_event() {
//!         if let Event::Message { message, .. } = event {
//!             break 'running message.chunks().flatten().copied().collect::<Vec<u8>>();
//!         }
//!     }
//!     // … then deliver all datagrams …
//!     while let Some(transmit) = client.poll_transmit(now, &mut buffer) {
//!         server.handle_datagram(now, client_address, transmit.payload);
//!     }
//!     while let Some(transmit) = server.poll_transmit(now, &mut buffer) {
//!         client.handle_datagram(now, server_address, transmit.payload);
//!     }
//!     // … then sleep until the next deadline.
//!     let deadlines = [client.poll_timeout(), server.poll_timeout()];
//!     now = now.max(deadlines.into_iter().flatten().min().ok_or("no deadline is left")?);
//!     client.handle_timeout(now);
//!     server.handle_timeout(now);
//! };
//! assert_eq!(text, b"\xFEhello");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Layers
//!
//! From bottom to top; each layer uses only those listed before it:
//!
//! - `storage`: blocks of fixed size in borrowed memory, and the queues, heaps and tables that link them.
//! - [`endpoint`]: the code that both protocols share: connection table, deadlines, events, hooks, counters and
//!   memory. It is generic over the trait [`endpoint::Protocol`] and depends on neither protocol.
//! - [`wire`] and [`game_protocol::wire`]: parsing and serialization of packets. The layers above never index bytes.
//! - [`codec`]: encodings for the payloads of messages: bit streams, Rabbit, aggregates, advertisements.
//! - [`secure`] (feature `secure`): handshake, packet protection and keys of secure connections.
//! - [`raknet`] and [`game_protocol`]: the protocols. Each defines its connection state machine, and dispatches
//!   datagrams to it. Each has an alias for its endpoint: [`raknet::Peer`] is an [`endpoint::Peer`].
//! - [`sim`] (feature `sim`): a seeded network in memory that loses, delays, duplicates and reorders datagrams.
//!
//! # Guarantees
//!
//! No input causes a panic or unbounded work. Handshake requests take no memory until their source address is
//! validated, unless the configuration admits clients without a cookie. Dropped datagrams are counted by reason
//! ([`raknet::DropReason`]). A message that the receiver has acknowledged is delivered to its application, or the
//! connection closes with a reason. The crate writes no log; read its counters and events instead.
//!
//! # Features
//!
//! None of these is on by default:
//!
//! - `alloc`: memory sized at run time ([`raknet::Peer::with_capacity`]).
//! - `zero-copy`: large messages are sent from vectors and received into vectors without a copy
//!   ([`endpoint::Peer::send_vec`], [`endpoint::Peer::take_event_data`]).
//! - `deflate`: compressed aggregates of messages ([`codec::aggregate`]).
//! - `sim`: the simulator.
//! - `derive`: `#[derive(Pack, Unpack)]` for [`codec::rabbit`].
//! - `secure`: secure connections.
//! - `key-log`: export of the keys of secure connections, for decryption of captures.
//! - `defmt`: events, reasons, errors and ids implement `defmt::Format`.
//!
//! # Profiles
//!
//! The feature `full`, on by default, selects the *full* profile. Without it the crate has the *small* profile, for a
//! client with little flash and RAM. Both follow the protocol and have the same interface:
//!
//! | | full | small |
//! |---|---|---|
//! | messages longer than a datagram | sent in parts | sending one returns [`raknet::SendError::FeatureDisabled`]; receiving a part of one closes the connection with [`raknet::DisconnectReason::MessageTooLarge`] |
//! | ordering channels | 0 to 31 | 0 to 3; sending on another one returns [`raknet::SendError::FeatureDisabled`], and a connection closes with [`raknet::DisconnectReason::ReceiveMemory`] if the remote peer uses another one |
//! | priorities | messages overtake others | messages leave in the order in which they were sent |
//! | queued messages | share blocks | each message takes its own blocks |
//! | connections at the same time | any number | one: `CONNECTIONS` must be 1, and every [`raknet::Capacity`] counts as 1 |
//! | counters | available | always 0; measurements such as round-trip time and MTU remain, and the clock difference is that of the last ping |
//!
//! Both profiles combine with these capabilities, which are on by default:
//!
//! | feature | with it | without it |
//! |---|---|---|
//! | `server` | accepts incoming connections | requests and pings from others are dropped |
//! | `unconnected` | pings, discovery and out-of-band messages | the functions do not exist |
//! | `delay-based` | delay-based congestion control | NewReno only |
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::unreachable,
        clippy::unwrap_used
    )
)]
#![cfg_attr(
    not(feature = "sim"),
    expect(rustdoc::broken_intra_doc_links, reason = "they name optional items")
)]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(test)]
extern crate std;

#[macro_use]
mod macros;

pub mod codec {
    //! Encodings for the payloads of messages, independent of the protocols.
    //!
    //! - [`bits`]: numbers of any bit width, in either bit order.
    //! - [`rabbit`]: the encoding of the Game Protocol's messages. It is decoded without a copy, even if a message is
    //!   in several pieces.
    //! - [`bitstream`]: RakNet's bit stream.
    //! - [`aggregate`]: several messages packed into one, as in Minecraft Bedrock.
    //! - [`frames`]: length-prefixed messages in a byte stream, as in RakNet's packetised TCP.
    //! - [`advertisement`]: the text that a Bedrock server puts into its pong.

    pub mod advertisement;
    pub mod aggregate;
    pub mod bits;
    pub mod bitstream;
    pub mod frames;
    pub mod rabbit;
}
mod cookie;
mod cursor;
pub mod endpoint;
pub mod game_protocol;
mod machine;
pub mod raknet;
mod rate_limit;
#[cfg(feature = "secure")]
pub mod secure;
mod serial;
#[cfg(feature = "sim")]
pub mod sim;
mod storage;
mod time;

pub use cursor::{Chunks, Piece};
pub use machine::{Machine, Transmit, split_zoned_host};
pub use rate_limit::HostPrefix;
pub use serial::U24;
pub use time::Instant;

/// RakNet's wire format, and the cursors that read and write it.
pub mod wire {
    pub use crate::cursor::{Reader, Source, Value, WireError, Writer};
    pub use crate::raknet::wire::{
        IP_UDP_OVERHEAD, MAX_DATAGRAM, MAX_MTU, MAX_MTU_IPV6, MIN_MTU, SecuritySizes, Wire, address, control,
        datagram, id, local, notice, offline, protection,
    };
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
