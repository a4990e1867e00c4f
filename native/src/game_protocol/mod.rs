//! The Game Protocol over UDP sockets: messages in chunks, each of them reliable or unreliable.
//!
//! The types are aliases of those in [`endpoint`](crate::endpoint). [`connect`] opens a connection to any server, also to
//! an original one, which ignores further attempts from the same port.
//!
//! ```
//! use rakwire_native::game_protocol::{self, Endpoint, Options, Reliability};
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = Endpoint::bind("127.0.0.1:0", Options::server(64)?).await?;
//! let here = game_protocol::connect(server.local_addr(), Options::client()?).await?;
//! let there = server.accept().await.ok_or("the server is closed")?;
//!
//! here.send(b"hello", Reliability::Reliable).await?;
//! let message = there.recv().await.ok_or("the client is gone")?;
//! assert_eq!(message.bytes, b"hello");
//!
//! here.disconnect().await;
//! assert!(there.recv().await.is_none());
//! # Ok(())
//! # }
//! ```

mod dial;

use std::time::Duration;

pub use rakwire::game_protocol::{
    Capacity, Config, ConnectFailure, ConnectionId, ConnectionStats, DisconnectReason, DropReason,
    GameProtocol, Hook, LineWriter, LogSink, PacketLogger, PcapWriter, PeerStats, Redial, Reliability,
    ResendInterval, SendError, Verdict,
};

pub use self::dial::{Attempts, DialError, connect, connect_with};
pub use crate::bind_error::BindError;

/// A UDP socket with the Game Protocol.
pub type Endpoint = crate::endpoint::Endpoint<GameProtocol>;
/// An open connection with another peer.
pub type Connection = crate::endpoint::Connection<GameProtocol>;
/// A client that asks for a connection, and has got none yet.
pub type Incoming = crate::endpoint::Incoming<GameProtocol>;
/// The options of an endpoint.
pub type Options = crate::endpoint::Options<GameProtocol>;
/// A received message.
pub type Message = crate::endpoint::Message<Reliability>;
/// Why a connection could not be opened.
pub type ConnectError = crate::endpoint::ConnectError<ConnectFailure>;
/// The counters of an endpoint.
pub type EndpointStats = crate::endpoint::EndpointStats<GameProtocol>;

impl crate::endpoint::Connection<GameProtocol> {
    /// The smoothed round-trip time; `None` before the first measurement, and once the connection has ended.
    #[must_use]
    pub fn rtt(&self) -> Option<Duration> {
        self.stats().map(|stats| stats.round_trip).filter(|rtt| !rtt.is_zero())
    }
}
