//! Why connections over TCP do not open, and why they end.

use std::io;

/// Why a connection could not be opened.
pub type ConnectError = crate::endpoint::ConnectError<ConnectFailure>;

/// Why an attempt to open a connection failed.
///
/// ```
/// use std::io::ErrorKind;
/// use rakwire_native::tcp::{ConnectError, ConnectFailure, Endpoint, Options};
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let closed = "127.0.0.1:1".parse()?;
/// let client = Endpoint::bind("127.0.0.1:0", Options::client()).await?;
/// let refused = ConnectFailure::Socket(ErrorKind::ConnectionRefused);
/// assert_eq!(client.connect(closed).await.err(), Some(ConnectError::Failed(refused)));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectFailure {
    /// The server has not answered within [`connect_timeout`](super::ConnectOptions::connect_timeout), or its TLS has not.
    #[error("the server does not answer")]
    NoAnswer,
    /// The system says why: mostly that the server refuses connections, or that there is no way to it.
    #[error("{0}")]
    Socket(io::ErrorKind),
    /// TLS does not trust the server, or has nothing in common with it. The text is that of rustls.
    #[error("TLS: {0}")]
    Tls(String),
}

/// Why a connection ended.
///
/// ```
/// use rakwire_native::tcp::{DisconnectReason, Endpoint, Options};
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = Endpoint::bind("127.0.0.1:0", Options::server(1)).await?;
/// let client = Endpoint::bind("127.0.0.1:0", Options::client()).await?;
/// let here = client.connect(server.local_addr()).await?;
/// let there = server.accept().await.ok_or("the server is closed")?;
/// here.disconnect().await;
/// assert_eq!(there.closed().await, DisconnectReason::Remote);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum DisconnectReason {
    /// This side closed it.
    #[error("closed by this side")]
    Local,
    /// The other side closed it, between two messages.
    #[error("closed by the other side")]
    Remote,
    /// The other side took nothing of what was sent for [`timeout`](super::Options::timeout).
    #[error("the other side does not take what is sent")]
    TimedOut,
    /// The other side opened the connection, and no message of it arrived within
    /// [`first_message_timeout`](super::Options::first_message_timeout).
    #[error("the other side has sent no message since it connected")]
    NoFirstMessage,
    /// The system lost the connection, or the other side closed it within a message.
    #[error("the connection was lost: {0}")]
    Lost(io::ErrorKind),
    /// The other side announced a message that is longer than [`max_message`](super::Options::max_message).
    #[error("the other side announced a message of {0} bytes, which is more than max_message")]
    MessageTooLong(u32),
}
