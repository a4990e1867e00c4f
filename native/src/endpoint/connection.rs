//! A connection, as its application holds it.

use std::net::SocketAddr;
use std::sync::Arc;

use rakwire::endpoint::{Protocol, Receipt, SendError};

use super::accept_queue::Unaccepted;
use super::error::ConnectError;
use super::inbox::Phase;
use super::message::Incoming;
use super::shared::{ConnectionRef, Shared};

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
pub struct Connection<P: Protocol> {
    pub(crate) reference: ConnectionRef<P>,
    pub(crate) identity: P::Identity,
}

impl<P: Protocol> Connection<P> {
    /// Waits until a connection that this side opens is open.
    pub(crate) async fn open(reference: ConnectionRef<P>) -> Result<Self, ConnectError<P::ConnectFailure>> {
        let opened = reference.inbox.opened().await;
        let identity =
            opened.map_err(|failure| failure.map_or(ConnectError::TurnedAway, ConnectError::Failed))?;
        Ok(Self { reference, identity })
    }

    pub(crate) fn accepted(shared: Arc<Shared<P>>, accepted: Unaccepted<P>) -> Self {
        let Unaccepted { id, identity, inbox } = accepted;
        Self { reference: ConnectionRef { shared, id, inbox }, identity }
    }

    /// Sends a message. RakNet: the first byte is its id; [`id::USER`](crate::id::USER), 0x86, and above are free for
    /// applications. The Game Protocol: a message has at most 129,024 bytes.
    ///
    /// While the connection has no room for the message, this waits until others were acknowledged: its own, if the
    /// message fits what is guaranteed to a connection ([`Options::capacity`](super::Options::capacity)), or those of
    /// other connections, if it is larger and they have borrowed the rest.
    /// When it returns, the message was taken for sending, not yet delivered. When the future is dropped before,
    /// nothing of the message was taken.
    ///
    /// RakNet: with a receipt reliability the name of the receipt comes back;
    /// [`recv_receipt`](crate::raknet::Connection::recv_receipt) tells what became of the message.
    ///
    /// # Errors
    /// [`SendError::NotConnected`] once the connection has ended or is ending, [`SendError::Empty`],
    /// [`SendError::ReservedId`] when the first byte is below 0x1B in RakNet, [`SendError::TooLong`] when the message is
    /// longer than the Game Protocol allows, [`SendError::NeverFits`] when the message can never fit the share of the
    /// memory that a connection has, and [`SendError::Filtered`] when a hook drops it.
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
    pub async fn send(&self, message: &[u8], delivery: P::Delivery) -> Result<Option<Receipt>, SendError> {
        match self.try_send(message, delivery) {
            Err(SendError::QuotaExceeded | SendError::PoolExhausted) => {}
            result => return result,
        }
        // Boxed, so that those who need not wait take little memory.
        Box::pin(self.reference.send_when_room(message, delivery)).await
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
    pub fn try_send(&self, message: &[u8], delivery: P::Delivery) -> Result<Option<Receipt>, SendError> {
        self.reference.try_send(message, delivery)
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
    pub async fn recv(&self) -> Option<Incoming<P::Delivery>> {
        self.reference.inbox.recv().await
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
    pub fn closed_reason(&self) -> Option<P::DisconnectReason> {
        match self.reference.inbox.phase() {
            // What could not be opened is never a connection.
            Phase::Opening | Phase::Open(_) | Phase::Failed(_) => None,
            Phase::Closed(reason) => Some(reason),
        }
    }

    /// Ends the connection: what was sent reliably before is delivered, for at most the `close_timeout` of the configuration,
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
        let Self { reference, .. } = self;
        reference.shared.act(|state, now| state.disconnect(now, reference.id));
        reference.inbox.ended().await;
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
    pub fn stats(&self) -> Option<P::ConnectionStats> {
        self.reference.shared.act(|state, _| state.hooked.peer.connection_stats(self.reference.id))
    }

    /// The address of the other peer.
    #[must_use]
    pub fn remote(&self) -> SocketAddr {
        self.reference.inbox.remote
    }
}
