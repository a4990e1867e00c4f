//! The Game Protocol over UDP sockets: chunked messages, each sent reliably or unreliably.
//!
//! The types are aliases of those in [`endpoint`](crate::endpoint). [`connect`] opens a connection to any server,
//! including an original one, which ignores further attempts from the same port.
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

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use rakwire::endpoint::Protocol;
use rakwire_udp::canonical;

use crate::endpoint::entropy;

pub use rakwire::game_protocol::{
    Capacity, Config, ConnectFailure, ConnectionId, ConnectionStats, DisconnectReason, DropReason,
    GameProtocol, Hook, LineWriter, LogSink, PacketLogger, PcapWriter, PeerStats, Redial, Reliability,
    ResendInterval, SendError, Verdict,
};

pub use crate::host::BindError;

/// A UDP socket with the Game Protocol.
pub type Endpoint = crate::endpoint::Endpoint<GameProtocol>;
/// An open connection to a peer.
pub type Connection = crate::endpoint::Connection<GameProtocol>;
/// A connection request that awaits the application's decision.
pub type Incoming = crate::endpoint::Incoming<GameProtocol>;
/// The options of an endpoint.
pub type Options = crate::endpoint::Options<GameProtocol>;
/// A received message.
pub type Message = crate::endpoint::Message<Reliability>;
/// The reason why a connection could not be opened.
pub type ConnectError = crate::endpoint::ConnectError<ConnectFailure>;
/// The counters of an endpoint.
pub type EndpointStats = crate::endpoint::EndpointStats<GameProtocol>;

impl crate::endpoint::Connection<GameProtocol> {
    /// Returns the smoothed round-trip time, or `None` before the first measurement and after the connection is closed.
    #[must_use]
    pub fn rtt(&self) -> Option<Duration> {
        self.stats().map(|stats| stats.round_trip).filter(|rtt| !rtt.is_zero())
    }
}

/// The number and duration of attempts made by [`connect_with`].
///
/// ```
/// use std::time::Duration;
/// use rakwire_native::game_protocol::{self, Attempts, ConnectError, ConnectFailure, DialError, Options};
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let silent = std::net::UdpSocket::bind("127.0.0.1:0")?;
/// let attempts = Attempts { max: 2, timeout: Duration::from_millis(20) };
/// let failed = game_protocol::connect_with(silent.local_addr()?, Options::client()?, attempts).await;
/// assert!(matches!(failed, Err(DialError::Connect(ConnectError::Failed(ConnectFailure::NoAnswer)))));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempts {
    /// Maximum number of attempts, each from a new port; at least 1.
    pub max: u8,
    /// How long each attempt waits for the server's challenge.
    pub timeout: Duration,
}

impl Default for Attempts {
    fn default() -> Self {
        Self { max: 5, timeout: Duration::from_secs(1) }
    }
}

/// The reason why [`connect`] failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DialError {
    /// No socket could be bound.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The connection could not be opened.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The system could not provide random bytes for another attempt.
    #[error("the system could not provide random bytes: {0}")]
    Random(#[source] io::Error),
}

/// Opens a connection to `address` with the default [`Attempts`].
///
/// Each attempt uses a new socket, because an original server ignores a client that retries from the same port. The
/// last socket is closed with the connection.
///
/// # Errors
/// Returns a [`DialError`], with [`ConnectFailure::NoAnswer`] after the last attempt.
pub async fn connect(address: SocketAddr, options: Options) -> Result<Connection, DialError> {
    connect_with(address, options, Attempts::default()).await
}

/// Opens a connection like [`connect`], with other [`Attempts`].
///
/// If the configuration retries from the [same port](Redial::SamePort), there is a single attempt, which takes the
/// configuration's `handshake_timeout`.
///
/// # Errors
/// The same errors as [`connect`].
pub async fn connect_with(
    address: SocketAddr,
    mut options: Options,
    attempts: Attempts,
) -> Result<Connection, DialError> {
    let here: SocketAddr = match canonical(address) {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let further_attempts = match options.config.redial {
        Redial::FreshPort => {
            options.config.handshake_timeout = attempts.timeout;
            attempts.max.saturating_sub(1)
        }
        Redial::SamePort(_) => 0,
    };
    for _ in 0..further_attempts {
        let endpoint = Endpoint::bind(here, options.clone()).await?;
        vary(&mut options).map_err(DialError::Random)?;
        match endpoint.connect(address).await {
            Err(ConnectError::Failed(ConnectFailure::NoAnswer)) => {}
            result => return Ok(result?),
        }
    }
    let endpoint = Endpoint::bind(here, options).await?;
    Ok(endpoint.connect(address).await?)
}

/// Sets a new salt and a new seed of the simulated network for another attempt.
fn vary(options: &mut Options) -> io::Result<()> {
    options.config.salt_key = GameProtocol::config(entropy()?).salt_key;
    #[cfg(feature = "sim")]
    if let Some(simulation) = &mut options.simulate {
        simulation.seed = simulation.seed.wrapping_add(1);
    }
    Ok(())
}
