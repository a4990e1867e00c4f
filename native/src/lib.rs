//! RakNet and the Game Protocol over UDP sockets: the protocols of the crate [`rakwire`] with a driver on [tokio].
//!
//! An [`Endpoint`] is one socket. It opens connections, accepts them and pings servers; a [`Connection`] sends and
//! receives messages. The crate's root names the types of [`raknet`]; [`game_protocol`] names the same types for the
//! Game Protocol, and [`endpoint`] has them for code that serves both.
//! Everything runs in two tasks of the runtime in which the endpoint was bound: one receives
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

mod arrival_queue;
mod bind_error;
mod clock;
pub mod endpoint;
mod entropy;
pub mod game_protocol;
mod network_emulator;
mod outgoing;
pub mod raknet;
mod simulation;
mod socket;
mod wakers;

pub use raknet::{
    AddressPattern, BanListFull, BindError, Capacity, Channel, Config, ConnectError, ConnectFailure,
    ConnectOptions, Connection, ConnectionStats, CookiePolicy, Delivery, Direction, DisconnectReason,
    DropReason, Endpoint, EndpointStats, Guid, Incoming, Options, OutOfBand, OutOfBandError, Outcome,
    PeerStats, PingError, PingScope, Pong, PongFraming, Priority, Progress, Receipt, Reliability, SendError,
    SetError, Unconnected, UnconnectedKind, id,
};
pub use simulation::{BadSimulation, Simulation};

#[cfg(doctest)]
#[doc = include_str!("../tests/README.md")]
mod readme {}
