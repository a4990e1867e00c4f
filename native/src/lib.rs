//! RakNet over UDP sockets: the protocol of the crate [`rakwire`] with a driver on [tokio].
//!
//! An [`Endpoint`] is one socket. It opens connections, accepts them and pings servers; a [`Connection`] sends and
//! receives messages. Everything runs in two tasks of the runtime in which the endpoint was bound: one receives
//! datagrams and notes when they arrived, the other one drives the protocol. So a round-trip time stays right when
//! the protocol has to wait for its turn.
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
//! Every future of this crate may be dropped at any time: a message is then either sent (or received) as a whole or
//! not at all.

#![forbid(unsafe_code)]

mod admission;
mod arrivals;
mod clock;
mod connection;
mod driver;
mod endpoint;
mod error;
pub mod game;
mod inbox;
mod options;
mod outgoing;
mod paths;
mod pings;
mod plugin;
mod requests;
mod shared;
mod simulation;
mod socket;
mod state;
mod stats;
mod strangers;
mod waiters;

pub use connection::{Connection, Incoming};
pub use endpoint::Endpoint;
pub use error::{BindError, ConnectError, OutOfBandError, PingError};
pub use options::Options;
pub use pings::Pong;
pub use rakwire::raknet::{
    AddressPattern, BanListFull, Capacity, Channel, Config, ConnectFailure, ConnectOptions, ConnectionStats,
    CookiePolicy, Delivery, Direction, DisconnectReason, DropReason, Guid, OutOfBand, Outcome, PeerStats,
    PingScope, Priority, Progress, Receipt, Reliability, SendError, SetError,
};
pub use rakwire::wire::id;
pub use simulation::{BadSimulation, Simulation};
pub use stats::EndpointStats;
pub use strangers::{Said, Stranger};

#[cfg(doctest)]
#[doc = include_str!("../tests/README.md")]
mod readme {}
