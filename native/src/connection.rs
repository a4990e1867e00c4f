//! A connection, as its application holds it.

use std::net::SocketAddr;
use std::time::Duration;

use rakwire::raknet::{
    ConnectionStats, Delivery, DisconnectReason, Guid, Outcome, Progress, Receipt, SendError, SetError,
};

use crate::inbox::Phase;
use crate::shared::Link;

/// A message that arrived.
///
/// ```
/// use rakwire_native::{Delivery, Incoming};
///
/// let message = Incoming { bytes: vec![0x86, 1], delivery: Delivery::RELIABLE };
/// assert!(message.delivery.reliability.is_reliable());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incoming {
    /// The bytes, from the id of the message on.
    pub bytes: Vec<u8>,
    /// How it travelled: the reliability and the channel. The priority is not on the wire and reads as the default.
    pub delivery: Delivery,
}

/// An open connection with another peer.
///
/// All methods take `&self`, so tasks can share it in an [`Arc`](std::sync::Arc), one to send and one to receive. When
/// it is dropped, the connection ends as with [`disconnect`](Self::disconnect), but nobody waits.
///
/// ```
/// use rakwire_native::{Connection, Delivery, SendError};
///
/// /// Sends every message back as it came.
/// async fn echo(connection: Connection) -> Result<(), SendError> {
///     while let Some(message) = connection.recv().await {
///         connection.send(&message.bytes, message.delivery).await?;
///     }
///     Ok(())
/// }
/// ```
#[derive(Debug)]
pub struct Connection {
    pub(crate) link: Link,
    pub(crate) guid: Guid,
}

impl Connection {
    /// Sends a message. The first byte is its id; [`id::USER`](crate::id::USER), 0x86, and above are free for
    /// applications.
    ///
    /// While the connection or the endpoint has no room for the message, this waits until others were acknowledged.
    /// When it returns, the message was taken for sending, not yet delivered. When the future is dropped before,
    /// nothing of the message was taken.
    ///
    /// With a receipt reliability the name of the receipt comes back; [`recv_receipt`](Self::recv_receipt) tells what
    /// became of the message.
    ///
    /// # Errors
    /// [`SendError::NotConnected`] once the connection has ended or is ending, [`SendError::Empty`],
    /// [`SendError::ReservedId`] when the first byte is below 0x1B, [`SendError::TooLong`] when the message can never
    /// fit the share of the memory that a connection has.
    ///
    /// ```
    /// use rakwire_native::{Channel, Connection, Delivery, SendError};
    ///
    /// async fn say(connection: &Connection, text: &str) -> Result<(), SendError> {
    ///     let chat = Delivery::RELIABLE_ORDERED.on(Channel::ZERO);
    ///     connection.send(&[&[0x90], text.as_bytes()].concat(), chat).await?;
    ///     Ok(())
    /// }
    /// ```
    pub async fn send(&self, message: &[u8], delivery: Delivery) -> Result<Option<Receipt>, SendError> {
        match self.try_send(message, delivery) {
            Err(SendError::QuotaExceeded | SendError::PoolExhausted) => {}
            result => return result,
        }
        // Boxed, so that those who need not wait take little memory.
        Box::pin(self.send_when_room(message, delivery)).await
    }

    async fn send_when_room(&self, message: &[u8], delivery: Delivery) -> Result<Option<Receipt>, SendError> {
        loop {
            let mut room = std::pin::pin!(self.link.shared.room.notified());
            // From here on no room is missed.
            room.as_mut().enable();
            match self.try_send(message, delivery) {
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
    ///
    /// ```
    /// use rakwire_native::{Connection, Delivery};
    ///
    /// /// Sends the newest position, or none when the path is too slow for it.
    /// fn update(connection: &Connection, position: [u8; 4]) -> bool {
    ///     let [x, y, z, w] = position;
    ///     connection.try_send(&[0x91, x, y, z, w], Delivery::UNRELIABLE_SEQUENCED).is_ok()
    /// }
    /// ```
    pub fn try_send(&self, message: &[u8], delivery: Delivery) -> Result<Option<Receipt>, SendError> {
        self.link.try_send(message, delivery)
    }

    /// The next message; waits until one arrives. Nothing once the connection has ended and every message that arrived
    /// before was taken: [`closed_reason`](Self::closed_reason) says why. When the future is dropped before, no message
    /// was taken.
    ///
    /// ```
    /// use rakwire_native::Connection;
    ///
    /// async fn count(connection: &Connection) -> usize {
    ///     let mut messages = 0;
    ///     while connection.recv().await.is_some() {
    ///         messages += 1;
    ///     }
    ///     messages
    /// }
    /// ```
    pub async fn recv(&self) -> Option<Incoming> {
        self.link.inbox.recv().await
    }

    /// What became of the next message that was sent with a receipt reliability; waits until that is known of one.
    /// Nothing once the connection has ended: what was still open then stays unknown. The receipts of an application
    /// that never asks for them take memory until the connection ends.
    ///
    /// ```
    /// use rakwire_native::{Connection, Delivery, Outcome, Reliability, SendError};
    ///
    /// async fn deliver(connection: &Connection, state: &[u8]) -> Result<bool, SendError> {
    ///     let sent = connection.send(state, Delivery::new(Reliability::UnreliableWithReceipt)).await?;
    ///     while let Some((receipt, outcome)) = connection.recv_receipt().await {
    ///         if Some(receipt) == sent {
    ///             return Ok(outcome == Outcome::Acknowledged);
    ///         }
    ///     }
    ///     Ok(false)
    /// }
    /// ```
    pub async fn recv_receipt(&self) -> Option<(Receipt, Outcome)> {
        self.link.inbox.recv_receipt().await
    }

    /// How far a large message has come that this side sends or receives; waits until one has come further. Nothing once
    /// the connection has ended.
    ///
    /// News come every [`progress_interval`](crate::Config::progress_interval) parts, so none come while that is 0, as
    /// it is unless changed. A reader that is late gets only the last news of each message, of 64 messages at most.
    ///
    /// ```
    /// use rakwire_native::{Connection, Direction, Options};
    ///
    /// fn options() -> std::io::Result<Options> {
    ///     let mut options = Options::client()?;
    ///     options.config.progress_interval = 16;
    ///     Ok(options)
    /// }
    ///
    /// async fn show_download(connection: &Connection) {
    ///     while let Some(progress) = connection.recv_progress().await {
    ///         if progress.direction == Direction::Receiving {
    ///             println!("{} of {} parts", progress.done, progress.parts);
    ///         }
    ///     }
    /// }
    /// ```
    pub async fn recv_progress(&self) -> Option<Progress> {
        self.link.inbox.recv_progress().await
    }

    /// Why the connection ended; nothing while it has not.
    ///
    /// ```
    /// use rakwire_native::{Connection, DisconnectReason};
    ///
    /// fn was_lost(connection: &Connection) -> bool {
    ///     connection.closed_reason() == Some(DisconnectReason::Lost)
    /// }
    /// ```
    #[must_use]
    pub fn closed_reason(&self) -> Option<DisconnectReason> {
        match self.link.inbox.phase() {
            Phase::Opening | Phase::Open(_) => None,
            Phase::Failed(_) => Some(DisconnectReason::Local),
            Phase::Closed(reason) => Some(reason),
        }
    }

    /// Ends the connection: what was sent before is delivered, for at most the `close_timeout` of the configuration,
    /// then the other peer is told. Waits until that is done. The end goes on when the future is dropped.
    ///
    /// ```
    /// use rakwire_native::{Connection, Delivery, SendError};
    ///
    /// async fn leave(connection: &Connection) -> Result<(), SendError> {
    ///     connection.send(b"\x90bye", Delivery::RELIABLE_ORDERED).await?;
    ///     connection.disconnect().await;
    ///     Ok(())
    /// }
    /// ```
    pub async fn disconnect(&self) {
        let link = &self.link;
        link.shared.act(|state, now| state.hooked.peer.disconnect(now, link.id));
        link.inbox.ended().await;
    }

    /// The counters and measurements of the connection; nothing once it has ended.
    ///
    /// ```
    /// use rakwire_native::Connection;
    ///
    /// fn latency(connection: &Connection) -> Option<std::time::Duration> {
    ///     Some(connection.stats()?.round_trip)
    /// }
    /// ```
    #[must_use]
    pub fn stats(&self) -> Option<ConnectionStats> {
        self.link.shared.act(|state, _| state.hooked.peer.connection_stats(self.link.id))
    }

    /// Sets how long the other peer of this connection may stay silent while it owes an acknowledgement.
    ///
    /// # Errors
    /// [`SetError::NoConnection`] when nothing is left of the connection.
    ///
    /// ```
    /// use std::time::Duration;
    /// use rakwire_native::{Connection, SetError};
    ///
    /// fn while_loading(connection: &Connection) -> Result<(), SetError> {
    ///     connection.set_timeout(Duration::from_secs(60))
    /// }
    /// ```
    pub fn set_timeout(&self, timeout: Duration) -> Result<(), SetError> {
        self.link.shared.act(|state, _| state.hooked.peer.set_timeout(self.link.id, timeout))
    }

    /// The address of the other peer.
    #[must_use]
    pub fn remote(&self) -> SocketAddr {
        self.link.inbox.remote
    }

    /// The identity that the other peer gave itself.
    #[must_use]
    pub const fn guid(&self) -> Guid {
        self.guid
    }
}
