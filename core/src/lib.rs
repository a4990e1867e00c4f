//! Reliable UDP for games from one `no_std` core: RakNet and the Game Protocol for servers, browsers and microcontrollers.
//!
//! The crate is *sans-IO*: it knows no socket, no clock and, without the feature `alloc`, no allocator. A program
//! hands datagrams and the time in, and takes datagrams, events and the next deadline out. That makes the same code
//! run under tokio, in WebAssembly, on a microcontroller, and under the virtual time of its own tests.
//!
//! # The run loop
//!
//! Change a peer any number of times; then take its events until there are none, take its datagrams until there are
//! none, and sleep until its timeout or the next datagram. Two peers in memory, whole:
//!
//! ```
//! use rakwire::Instant;
//! use rakwire::raknet::{Config, Delivery, Event, Peer, Resources};
//!
//! // All memory of both: one connection each, which shares 32 blocks of 128 bytes.
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
//!     // Take events until there are none …
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
//!     // … then datagrams …
//!     while let Some(transmit) = client.poll_transmit(now, &mut buffer) {
//!         server.handle_datagram(now, client_address, transmit.payload);
//!     }
//!     while let Some(transmit) = server.poll_transmit(now, &mut buffer) {
//!         client.handle_datagram(now, server_address, transmit.payload);
//!     }
//!     // … then sleep until the next deadline.
//!     let deadlines = [client.poll_timeout(), server.poll_timeout()];
//!     now = now.max(deadlines.into_iter().flatten().min().ok_or("nothing will ever happen")?);
//!     client.handle_timeout(now);
//!     server.handle_timeout(now);
//! };
//! assert_eq!(text, b"\xFEhello");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Layers
//!
//! From the bottom to the top; each uses only what stands before it:
//!
//! - `storage`: blocks of fixed size in lent memory, and the queues, heaps and tables that run through them.
//! - [`endpoint`]: what both protocols run in: connection table, deadlines, events, hooks, counters and memory, generic
//!   over the trait [`endpoint::Protocol`]. It knows neither protocol.
//! - [`wire`] and [`game_protocol::wire`]: bytes to packets and back. Nothing above them indexes a byte.
//! - [`codec`]: encodings for the contents of messages: bit streams, Rabbit, aggregates, advertisements.
//! - [`secure`] (feature `secure`): the handshake, the protection and the keys of secure connections.
//! - [`raknet`] and [`game_protocol`]: the protocols. Each brings a connection, which is one state machine, and decides
//!   what a datagram is for. Each names the endpoint for its own: [`raknet::Peer`] is an [`endpoint::Peer`].
//! - [`sim`] (feature `sim`): a network in memory that loses, delays, doubles and reorders, by a seed.
//!
//! # Promises
//!
//! No panic, no unbounded work and no memory for an unknown address, whatever arrives; what is dropped is counted by reason
//! ([`raknet::DropReason`]). What was acknowledged is delivered, or the connection ends with a reason. Nothing is
//! logged here: counters and events are there to be read.
//!
//! # Features
//!
//! `alloc`: memory sized at run time ([`raknet::Peer::with_capacity`]). `hand-over`: large messages in vectors that are not
//! copied ([`endpoint::Peer::send_vec`], [`endpoint::Peer::take_lent`]). `deflate`: compressed aggregates of messages
//! ([`codec::aggregate`]). `sim`: the simulator. `derive`: `#[derive(Pack, Unpack)]` for [`codec::rabbit`]. `secure`: secure connections. `key-log`: their keys
//! for who asks for them. `defmt`: events,
//! reasons, errors and names implement `defmt::Format`. None of these is on by default.
//!
//! On by default, and to be left out where flash and RAM are scarce; the interface stays the same:
//!
//! | feature | what it brings | without it |
//! |---|---|---|
//! | `server` | others may connect | requests and pings of others are dropped |
//! | `unconnected` | pings, discovery and out-of-band messages | the functions do not exist |
//! | `delay-based` | the delay-based congestion control | there is NewReno alone |
//! | `splitting` | messages longer than a datagram | sending one is [`raknet::SendError::LeftOut`]; a part of one that arrives ends the connection with [`raknet::DisconnectReason::MessageTooLarge`] |
//! | `sequencing` | messages of which only the newest counts | sending one is [`raknet::SendError::LeftOut`]; those that arrive are delivered as they come, outdated ones too |
//! | `channels` | the ordering channels 4 to 31 | sending on one is [`raknet::SendError::LeftOut`]; a connection whose other end uses one ends for want of memory |
//! | `priorities` | messages that go before others | all go in the order in which they were sent |
//! | `packing` | messages that wait for their turn share blocks | each takes blocks of its own |
//! | `connections` | more than one connection at once | `CONNECTIONS` must be 1, and a [`raknet::Capacity`] counts as one of 1 |
//! | `statistics` | counters | all are 0; what is measured, such as round-trip time and MTU, is there, and the clock difference is that of the last ping |
// Parts that are left out leave some of their helpers without a caller; the whole is checked.
#![cfg_attr(
    not(all(
        feature = "channels",
        feature = "connections",
        feature = "delay-based",
        feature = "packing",
        feature = "priorities",
        feature = "secure",
        feature = "sequencing",
        feature = "server",
        feature = "splitting",
        feature = "statistics",
        feature = "unconnected",
    )),
    allow(dead_code)
)]
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
    //! Encodings for the contents of messages. The protocols know none of them.
    //!
    //! - [`bits`]: numbers of any width in bytes, in either bit order.
    //! - [`rabbit`]: the encoding of the Game Protocol, read without a copy from the pieces that a message lies in.
    //! - [`bitstream`]: RakNet's bit stream.
    //! - [`aggregate`]: many messages in one, as Minecraft Bedrock sends them.
    //! - [`frames`]: messages on a stream of bytes, as RakNet's packetised TCP has them.
    //! - [`advertisement`]: what a pong of a Bedrock server carries.

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

/// The bytes of RakNet, and the cursors that read and write them.
pub mod wire {
    pub use crate::cursor::{Reader, Source, Value, WireError, Writer};
    pub use crate::raknet::wire::{
        IP_UDP_OVERHEAD, MAX_DATAGRAM, MAX_MTU, MAX_MTU_IPV6, MIN_MTU, SecuritySizes, Wire, address, capsule,
        control, datagram, id, local, notice, offline, protection,
    };
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
