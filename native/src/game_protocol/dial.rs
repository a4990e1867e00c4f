//! Opening a connection from a fresh port for each attempt.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use rakwire::endpoint::Protocol;
use rakwire::game_protocol::{ConnectFailure, GameProtocol, Redial};
use rakwire_udp::canonical;

use crate::bind_error::BindError;
use crate::endpoint::{ConnectError, Connection, Endpoint, Options};
use crate::entropy::entropy;

/// How often [`connect_with`] tries.
///
/// ```
/// use std::time::Duration;
/// use rakwire_native::game_protocol::{self, Attempts, ConnectError, ConnectFailure, DialError, Options};
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let silent = std::net::UdpSocket::bind("127.0.0.1:0")?;
/// let attempts = Attempts { most: 2, timeout: Duration::from_millis(20) };
/// let failed = game_protocol::connect_with(silent.local_addr()?, Options::client()?, attempts).await;
/// assert!(matches!(failed, Err(DialError::Connect(ConnectError::Failed(ConnectFailure::NoAnswer)))));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempts {
    /// From how many ports, at least 1.
    pub most: u8,
    /// How long each attempt waits for the server's challenge.
    pub timeout: Duration,
}

impl Default for Attempts {
    fn default() -> Self {
        Self { most: 5, timeout: Duration::from_secs(1) }
    }
}

/// Why [`connect`] failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DialError {
    /// No socket could be bound.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The connection could not be opened.
    #[error(transparent)]
    Connect(#[from] ConnectError<ConnectFailure>),
    /// The system gives no random bytes for another attempt.
    #[error("the system gives no random bytes: {0}")]
    Random(#[source] io::Error),
}

/// Opens a connection to `address` with the default [`Attempts`], each from a socket of its own: an original server that
/// has heard a client once does not hear it again from the same port. The last socket is closed with the connection.
///
/// # Errors
/// A [`DialError`]; with [`ConnectFailure::NoAnswer`] after the last attempt.
pub async fn connect(
    address: SocketAddr,
    options: Options<GameProtocol>,
) -> Result<Connection<GameProtocol>, DialError> {
    connect_with(address, options, Attempts::default()).await
}

/// As [`connect`], with other [`Attempts`]. If the configuration says that a client repeats its messages from the
/// [same port](Redial::SamePort), there is one attempt, which takes the configuration's `handshake_timeout`.
///
/// # Errors
/// As [`connect`].
pub async fn connect_with(
    address: SocketAddr,
    mut options: Options<GameProtocol>,
    attempts: Attempts,
) -> Result<Connection<GameProtocol>, DialError> {
    let here: SocketAddr = match canonical(address) {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let further_attempts = match options.config.redial {
        Redial::FreshPort => {
            options.config.handshake_timeout = attempts.timeout;
            attempts.most.saturating_sub(1)
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

/// Makes another attempt differ in its salt, and in the fate of its datagrams in a simulated network.
fn vary(options: &mut Options<GameProtocol>) -> io::Result<()> {
    options.config.salt_key = GameProtocol::config(entropy()?).salt_key;
    if let Some(simulation) = &mut options.simulate {
        simulation.seed = simulation.seed.wrapping_add(1);
    }
    Ok(())
}
