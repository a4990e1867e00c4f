//! Messages over TCP: RakNet's `TCPInterface` and `PacketizedTCP`, with the same methods as connections over UDP.
//!
//! Use TCP where UDP is blocked, for tools, web services, and long transfers next to a game. Everything arrives in the
//! order in which it was sent, so a lost packet delays everything after it. Send the messages of a game over
//! [`raknet::Connection`](rakwire_native::raknet::Connection).
//!
//! [`Endpoint`] and [`Connection`] have the methods of their namesakes over UDP, with the same arguments and results. A
//! function that sends and receives therefore only needs another type in its signature. The delivery passed to
//! [`send`](Connection::send) is not transmitted, and received messages have [`Delivery::RELIABLE_ORDERED`]. No message
//! id is reserved. There are no receipts, progress, passwords, bans, pings and hooks over TCP. A plugin is attached to
//! one connection, by [`PluginConnection`].
//!
//! ```
//! use rakwire_extras::tcp::{Connection, Endpoint, Options};
//! use rakwire_native::{Delivery, SendError};
//!
//! async fn greet(connection: &Connection) -> Result<(), SendError> {
//!     connection.send(b"\x86hello", Delivery::RELIABLE_ORDERED).await?;
//!     Ok(())
//! }
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = Endpoint::bind("127.0.0.1:0", Options::server(64)).await?;
//! let client = Endpoint::bind("127.0.0.1:0", Options::client()).await?;
//! let here = client.connect(server.local_addr()).await?;
//! let there = server.accept().await.ok_or("the server is closed")?;
//!
//! greet(&here).await?;
//! here.disconnect().await;
//! assert_eq!(there.recv().await.ok_or("the client is gone")?.bytes, b"\x86hello");
//! assert!(there.recv().await.is_none());
//! # Ok(())
//! # }
//! ```
//!
//! # Wire format
//!
//! [`Framing::Packets`] is the format of `PacketizedTCP`: each message follows its length
//! ([`codec::frames`](rakwire::codec::frames)). [`Framing::Stream`] is that of `TCPInterface`: bytes only, without
//! message boundaries. With the feature `tls` both are encrypted with rustls (`Options::tls`, `ConnectOptions::tls`);
//! the original uses OpenSSL.

mod connection;
mod endpoint;
mod listener;
mod options;
mod plugins;
mod spans;
mod stream;

pub use self::connection::{Connection, ConnectionStats, DisconnectReason, Message};
pub use self::endpoint::{Broadcast, Endpoint};
pub use self::listener::EndpointStats;
pub use self::options::{ConnectOptions, Framing, Options};
pub use self::plugins::{NoMessages, PluginConnection};
pub use self::stream::{ConnectError, ConnectFailure};
pub use rakwire::endpoint::SendError;
pub use rakwire::raknet::{Delivery, Receipt};
pub use rakwire_native::BindError;
pub use rakwire_native::endpoint::{TryAcceptError, TryRecvError};

/// The library behind the TLS options.
#[cfg(feature = "tls")]
pub use tokio_rustls::rustls;
