//! A connection, as its application holds it.

use std::net::SocketAddr;

use rakwire::game_protocol::{ConnectionStats, DisconnectReason, Reliability, SendError};

use super::state::{Link, Phase};

/// A message that arrived.
///
/// ```
/// use rakwire_native::game::{Incoming, Reliability};
///
/// let message = Incoming { bytes: vec![1], reliability: Reliability::Unreliable };
/// assert!(!message.reliability.is_reliable());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incoming {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// How it travelled.
    pub reliability: Reliability,
}

/// An open connection with another peer.
///
/// All methods take `&self`, so tasks can share it in an [`Arc`](std::sync::Arc). When it is dropped, the connection
/// ends as with [`disconnect`](Self::disconnect), but nobody waits.
///
/// ```
/// use rakwire_native::game::{Connection, SendError};
///
/// /// Sends every message back as it came.
/// async fn echo(connection: Connection) -> Result<(), SendError> {
///     while let Some(message) = connection.recv().await {
///         connection.send(&message.bytes, message.reliability).await?;
///     }
///     Ok(())
/// }
/// ```
#[derive(Debug)]
pub struct Connection {
    pub(super) link: Link,
}

impl Connection {
    /// Sends a message of 1 to 129,024 bytes. While there is no room for it, this waits until others were acknowledged.
    /// When it returns, the message was taken for sending, not yet delivered.
    ///
    /// # Errors
    /// [`SendError::NotConnected`] once the connection has ended or is ending, [`SendError::Empty`],
    /// [`SendError::TooLong`], and [`SendError::NeverFits`] when the message can never fit the connection's
    /// share of the memory.
    ///
    /// ```
    /// use rakwire_native::game::{Connection, Reliability, SendError};
    ///
    /// async fn over(connection: &Connection) -> Result<(), SendError> {
    ///     connection.send(b"game over", Reliability::Reliable).await?;
    ///     connection.disconnect().await; // after the message was acknowledged, or a second
    ///     Ok(())
    /// }
    /// ```
    pub async fn send(&self, message: &[u8], reliability: Reliability) -> Result<(), SendError> {
        loop {
            let mut room = std::pin::pin!(self.link.shared.room.notified());
            // From here on no room is missed.
            room.as_mut().enable();
            match self.try_send(message, reliability) {
                Err(SendError::QuotaExceeded | SendError::PoolExhausted) => room.await,
                result => return result,
            }
        }
    }

    /// Sends a message if there is room for it now.
    ///
    /// # Errors
    /// As [`send`](Self::send), and [`SendError::QuotaExceeded`] or [`SendError::PoolExhausted`] when there is no room
    /// until others were acknowledged. Nothing of the message was taken then.
    pub fn try_send(&self, message: &[u8], reliability: Reliability) -> Result<(), SendError> {
        self.link.try_send(message, reliability)
    }

    /// The next message; waits until one arrives. Nothing once the connection has ended and every message that arrived
    /// before was taken: [`closed_reason`](Self::closed_reason) says why.
    pub async fn recv(&self) -> Option<Incoming> {
        self.link.inbox.recv().await
    }

    /// Why the connection ended; nothing while it has not.
    #[must_use]
    pub fn closed_reason(&self) -> Option<DisconnectReason> {
        match self.link.inbox.phase() {
            Phase::Opening | Phase::Open(()) => None,
            Phase::Failed(_) => Some(DisconnectReason::Local),
            Phase::Closed(reason) => Some(reason),
        }
    }

    /// Ends the connection: what was sent reliably is delivered, for at most the `close_timeout` of the configuration,
    /// then the other peer is told. Waits until that is done. The end goes on when the future is dropped.
    pub async fn disconnect(&self) {
        let link = &self.link;
        link.shared.act(|state, now| state.hooked.peer.disconnect(now, link.id));
        link.inbox.ended().await;
    }

    /// The counters and measurements of the connection; nothing once it has ended.
    #[must_use]
    pub fn stats(&self) -> Option<ConnectionStats> {
        self.link.shared.act(|state, _| state.hooked.peer.connection_stats(self.link.id))
    }

    /// The address of the other peer.
    #[must_use]
    pub fn remote(&self) -> SocketAddr {
        self.link.inbox.remote
    }
}
