//! A connection over TCP, as the application sees it.

use std::net::SocketAddr;
use std::sync::Arc;

use rakwire::endpoint::SendError;
use rakwire::raknet::{Delivery, Receipt};
use tokio::sync::mpsc;

use super::error::DisconnectReason;
use super::options::Framing;
use super::shared::{Phase, Queued, Shared};
use super::stats::ConnectionStats;
use crate::endpoint::TryRecvError;

/// A received message. Its delivery is [`Delivery::RELIABLE_ORDERED`].
pub type Message = crate::endpoint::Message<Delivery>;

/// An open connection with another peer over TCP.
///
/// A clone is another handle of the same connection. Each message goes to one of those who receive. Dropping the last handle
/// closes the connection like [`disconnect`](Self::disconnect), without waiting.
///
/// ```
/// use rakwire_native::tcp::{Delivery, DisconnectReason, Endpoint, Options, SendError};
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = Endpoint::bind("127.0.0.1:0", Options::server(1)).await?;
/// let client = Endpoint::bind("127.0.0.1:0", Options::client()).await?;
/// let here = client.connect(server.local_addr()).await?;
/// let there = server.accept().await.ok_or("the server is closed")?;
/// assert_eq!(here.remote(), server.local_addr());
///
/// here.send(&[0x90, 1], Delivery::RELIABLE_ORDERED).await?;
/// here.try_send(&[0x90, 2], Delivery::RELIABLE_ORDERED)?;
/// here.disconnect().await;
/// assert_eq!(here.closed_reason(), Some(DisconnectReason::Local));
/// assert_eq!(here.try_send(&[0x90, 3], Delivery::RELIABLE), Err(SendError::NotConnected));
///
/// let mut messages = Vec::new();
/// while let Some(message) = there.recv().await {
///     assert_eq!(message.delivery, Delivery::RELIABLE_ORDERED);
///     messages.push(message.bytes);
/// }
/// assert_eq!(messages, [[0x90, 1], [0x90, 2]]);
/// assert_eq!(there.stats().messages_received, 2);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Connection {
    handle: Arc<Handle>,
}

/// What all handles share; dropped with the last of them.
#[derive(Debug)]
struct Handle(Arc<Shared>);

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Connection {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { handle: Arc::new(Handle(shared)) }
    }

    fn shared(&self) -> &Shared {
        &self.handle.0
    }

    /// Sends a message. Waits while the [send queue](super::Options::send_queue) has no room for it. When it returns, the
    /// message is queued, but not yet delivered. If the future is dropped earlier, nothing is sent.
    ///
    /// TCP delivers everything in order, so that the delivery changes nothing. It returns `None`, since there are no
    /// receipts.
    ///
    /// # Errors
    /// [`SendError::NotConnected`] once the connection has ended or is ending; [`SendError::Empty`];
    /// [`SendError::NeverFits`] for a message beyond [`max_message`](super::Options::max_message).
    pub async fn send(&self, message: &[u8], delivery: Delivery) -> Result<Option<Receipt>, SendError> {
        match self.try_send(message, delivery) {
            Err(SendError::QuotaExceeded) => {}
            result => return result,
        }
        let room = self.shared().send_room.take(message.len()).await;
        self.shared().frame(message, room.ok_or(SendError::NotConnected)?).map(|()| None)
    }

    /// Sends a message if there is room for it now.
    ///
    /// # Errors
    /// Those of [`send`](Self::send), and [`SendError::QuotaExceeded`] if there is no room until others have left.
    pub fn try_send(&self, message: &[u8], _delivery: Delivery) -> Result<Option<Receipt>, SendError> {
        self.shared().try_send(message).map(|()| None)
    }

    /// Whether this is a handle of that connection.
    pub(super) fn is(&self, shared: &Shared) -> bool {
        core::ptr::eq(self.shared(), shared)
    }

    /// Waits for the next message. Returns `None` once the connection has ended and all messages have been received; see
    /// [`closed_reason`](Self::closed_reason). If the future is dropped earlier, no message is lost.
    pub async fn recv(&self) -> Option<Message> {
        self.shared().receive_queue.lock().await.recv().await.map(message)
    }

    /// The next message, if one has arrived.
    ///
    /// # Errors
    /// [`TryRecvError::Empty`] if no message is waiting, or another handle waits for it; [`TryRecvError::Closed`] once the
    /// connection has ended and all messages have been received.
    pub fn try_recv(&self) -> Result<Message, TryRecvError> {
        let mut receive_queue = self.shared().receive_queue.try_lock().map_err(|_| TryRecvError::Empty)?;
        receive_queue.try_recv().map(message).map_err(|error| match error {
            mpsc::error::TryRecvError::Empty => TryRecvError::Empty,
            mpsc::error::TryRecvError::Disconnected => TryRecvError::Closed,
        })
    }

    /// Waits until the connection has ended, and returns why. Messages that arrived before can still be received. While the
    /// [receive queue](super::Options::receive_queue) is full, the end of the other side is not seen.
    pub async fn closed(&self) -> DisconnectReason {
        self.shared().ended().await
    }

    /// Why the connection ended; `None` while it is open. [`closed`](Self::closed) waits for it.
    #[must_use]
    pub fn closed_reason(&self) -> Option<DisconnectReason> {
        match self.shared().phase() {
            Phase::Open | Phase::Closing => None,
            Phase::Ended(reason) => Some(reason),
        }
    }

    /// Closes the connection and waits until it has ended: what was sent before leaves first, for at most
    /// [`close_timeout`](super::Options::close_timeout). This continues if the future is dropped.
    pub async fn disconnect(&self) {
        self.shared().close();
        self.shared().ended().await;
    }

    /// The counters of the connection, also once it has ended.
    #[must_use]
    pub fn stats(&self) -> ConnectionStats {
        self.shared().counters.read()
    }

    pub(super) fn framing(&self) -> Framing {
        self.shared().options.framing
    }

    /// The address of the other peer.
    #[must_use]
    pub fn remote(&self) -> SocketAddr {
        self.shared().remote
    }
}

fn message(queued: Queued) -> Message {
    Message { bytes: queued.bytes, delivery: Delivery::RELIABLE_ORDERED }
}
