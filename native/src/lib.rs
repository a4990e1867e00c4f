//! RakNet and the Game Protocol over UDP sockets: a [tokio] driver for the protocols of the crate [`rakwire`].
//!
//! An [`Endpoint`] is a socket that opens and accepts connections and pings servers. A [`Connection`] sends and
//! receives messages. The crate root re-exports the types of [`raknet`]; [`game_protocol`] has the same types for the
//! Game Protocol (the protocol of the snow-fight game), and [`endpoint`] the generic ones for code that supports both.
//! A game without a runtime calls [`polled::Endpoint`] once per frame.
//!
//! An endpoint runs as two tasks on the tokio runtime in which it was bound. One receives datagrams and records their
//! arrival times; the other drives the protocol. A delay of the second task therefore does not affect measured
//! round-trip times.
//!
//! ```
//! use rakwire_native::{Delivery, Endpoint, Options};
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = Endpoint::bind("127.0.0.1:0", Options::server(64)?).await?;
//! let client = Endpoint::bind("127.0.0.1:0", Options::client()?).await?;
//!
//! let here = client.connect(server.local_addr()).await?;
//! let there = server.accept().await.ok_or("the server is closed")?;
//!
//! here.send(b"\x86hello", Delivery::RELIABLE_ORDERED).await?;
//! let message = there.recv().await.ok_or("the client is gone")?;
//! assert_eq!(message.bytes, b"\x86hello");
//!
//! here.disconnect().await;
//! assert!(there.recv().await.is_none());
//! # Ok(())
//! # }
//! ```
//!
//! # Features
//!
//! None is enabled by default.
//!
//! - `secure`: secure RakNet connections, connect tokens and key files: `secure`, `Options::secure`.
//! - `sim`: a simulated lossy network between an endpoint and its socket, for tests: `Simulation`, `Options::simulate`.
//! - `bytes`: converts a received [`Message`] to `bytes::Bytes` without a copy.
//! - `metrics`: endpoints report counters through the facade of the crate `metrics`. The README of this crate lists the
//!   names.
//! - `tracing`: endpoints and connections have spans, and events for their outcome.
//! - `ring`: secure connections encrypt datagrams with the cipher of the crate `ring`, which is several times as fast:
//!   `RingCipher`. `docs/secure.md` describes the key material that it does not erase.
//! - `key-log`: `KeyLogFile` writes the keys of secure connections to a file, to decrypt captures of them.
//! - `deflate`, `derive`: compressed aggregates and `#[derive(Pack, Unpack)]` of the [`codec`]s.
//!
//! The crate `rakwire-extras` provides messages over TCP, port mapping on routers, a log in SQLite, and crash reports.
//!
//! All futures of this crate are cancel safe: a message is sent or received completely or not at all.

// Only `huge_pages` contains unsafe code: one call that advises the kernel.
#![deny(unsafe_code)]

mod arrivals;
pub mod endpoint;
pub mod game_protocol;
mod host;
mod huge_pages;
mod outgoing;
pub mod polled;
pub mod raknet;
pub mod reconnect;
mod simulation;
mod socket;
mod unreachable;

/// Locks and atomics of shared state. The tests in `locks/` replace them to try many interleavings of threads.
mod sync {
    pub(crate) use std::sync::{Arc, Mutex, MutexGuard, PoisonError, atomic};

    pub(crate) use atomic_waker::AtomicWaker;
}

/// Keys and trust settings for secure connections.
#[cfg(feature = "secure")]
pub use rakwire::secure;

/// Encodings for message contents: bit streams, Rabbit, aggregates, advertisements.
pub use rakwire::codec;

pub use host::{Clock, WallClock, lookup, lookup_blocking};
pub use raknet::RakNet;
#[cfg(feature = "ring")]
pub use raknet::RingCipher;
#[cfg(feature = "key-log")]
pub use raknet::security::KeyLogFile;
#[cfg(feature = "secure")]
pub use raknet::security::{
    KeyFileError, create_key_file, create_token_key_file, read_key_file, read_token_key_file, system_random,
};
pub use raknet::{
    AddressPattern, BanListFull, BindError, Capacity, Channel, Config, ConnectError, ConnectFailure,
    ConnectOptions, Connection, ConnectionStats, CookiePolicy, Delivery, Direction, DisconnectReason,
    DropReason, Endpoint, EndpointStats, Guid, Incoming, Message, Options, OutOfBand, OutOfBandError,
    Outcome, PeerStats, PingError, PingScope, Pong, PongFraming, Priority, Progress, Receipt, Reliability,
    SendError, SetError, Unconnected, UnconnectedKind, id,
};
#[cfg(feature = "secure")]
pub use raknet::{SecurePeer, Security, UsedTokenTable};
/// The core crate, for items that are not re-exported here.
pub use rakwire;
pub use rakwire::{Chunks, Instant};
#[cfg(feature = "sim")]
pub use simulation::{Simulation, SimulationSyntaxError};

#[cfg(doctest)]
#[doc = include_str!("../tests/README.md")]
mod readme {}
