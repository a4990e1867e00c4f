//! The application's view of a connection.

use core::net::SocketAddr;
use core::task::Poll;

use rakwire::endpoint::{ConnectionId, Hook, Outcome, Progress, Protocol, Receipt, SendError};

use crate::received::Received;
use crate::reference::ConnectionRef;
use crate::shared::EventInfo;

/// An event of a connection. [`Connection::next`] has an example.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'d, P: Protocol, H: Hook<P> = ()> {
    /// A message from the remote peer.
    Message(Received<'d, P, H>),
    /// The outcome of a message sent with receipt; RakNet only.
    Receipt {
        /// The receipt that [`Connection::send`] returned.
        receipt: Receipt,
        /// Whether the message was acknowledged.
        outcome: Outcome,
    },
    /// The progress of a large message ([`Config::progress_interval`](rakwire::raknet::Config::progress_interval));
    /// RakNet only.
    Progress(Progress),
    /// The MTU, including 28 bytes of IP and UDP headers, has decreased, because the path MTU is smaller than the
    /// negotiated one; RakNet only.
    MtuChanged(u16),
}

// A derived implementation would require `P: Format`.
#[cfg(feature = "defmt")]
impl<P: Protocol, H: Hook<P>> defmt::Format for Event<'_, P, H> {
    fn format(&self, f: defmt::Formatter<'_>) {
        match self {
            Self::Message(message) => defmt::write!(f, "Message({})", message),
            Self::Receipt { receipt, outcome } => defmt::write!(f, "Receipt({}, {})", receipt, outcome),
            Self::Progress(progress) => defmt::write!(f, "Progress({})", progress),
            Self::MtuChanged(mtu) => defmt::write!(f, "MtuChanged({})", mtu),
        }
    }
}

/// An open connection with another peer.
///
/// Clones refer to the same connection, so that one task can send while another one receives. Dropping the last clone
/// closes the connection like [`disconnect`](Self::disconnect), without waiting.
///
/// All futures are cancel safe: a message is sent or received completely or not at all.
///
/// ```
/// use embassy_futures::join::join;
/// use rakwire::raknet::{Delivery, DisconnectReason, RakNet, SendError};
///
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/loopback.rs"));
/// # fn main() -> Result<(), Box<dyn std::error::Error>> { loopback::run(async |stack| {
/// # let (client, server) = loopback::peers::<RakNet>(stack);
/// let (here, there) = join(client.connect(loopback::SERVER), server.accept()).await;
/// let here = here?;
/// assert_eq!(here.remote(), loopback::SERVER);
///
/// here.send(&[0xFE, 1], Delivery::RELIABLE_ORDERED).await?;
/// here.try_send(&[0xFE, 2], Delivery::RELIABLE_ORDERED)?;
/// let messages = async {
///     let mut numbers = Vec::new();
///     while let Some(message) = there.recv().await {
///         numbers.push(message.read(|bytes| bytes.to_vec())[1]);
///     }
///     numbers
/// };
/// let (numbers, ()) = join(messages, here.disconnect()).await;
/// assert_eq!(numbers, [1, 2]);
/// assert_eq!(here.closed_reason(), Some(DisconnectReason::Local));
/// assert_eq!(there.closed_reason(), Some(DisconnectReason::Remote));
/// assert_eq!(here.try_send(&[0xFE, 3], Delivery::RELIABLE), Err(SendError::NotConnected));
/// # Ok(()) }) }
/// ```
#[derive(Debug)]
pub struct Connection<'d, P: Protocol, H: Hook<P> = ()> {
    pub(crate) reference: ConnectionRef<'d, P, H>,
    remote: SocketAddr,
    identity: P::Identity,
}

// A derived implementation would require `H: Clone`.
impl<P: Protocol, H: Hook<P>> Clone for Connection<'_, P, H> {
    fn clone(&self) -> Self {
        Self { reference: self.reference.clone(), remote: self.remote, identity: self.identity }
    }
}

impl<'d, P: Protocol, H: Hook<P>> Connection<'d, P, H> {
    pub(crate) const fn new(
        reference: ConnectionRef<'d, P, H>,
        remote: SocketAddr,
        identity: P::Identity,
    ) -> Self {
        Self { reference, remote, identity }
    }

    /// Sends a message. Waits while the send memory is full.
    ///
    /// In RakNet its first byte is the message id; applications can use ids from 0x86. In the Game Protocol a message
    /// has at most 129,024 bytes.
    ///
    /// Acknowledgements of earlier messages free memory. When this method returns, the message is queued but not yet
    /// delivered. With a RakNet reliability with receipt, returns the receipt; [`next`](Self::next) later returns the
    /// outcome.
    ///
    /// # Errors
    /// - [`SendError::NotConnected`] once the connection is closed or closing
    /// - [`SendError::Empty`] for a message without bytes
    /// - [`SendError::NeverFits`] for a message that exceeds the memory that a connection may use
    /// - [`SendError::ReservedId`] for a RakNet message with an id below 0x1B
    /// - [`SendError::TooLong`] for a Game Protocol message of more than 129,024 bytes
    /// - [`SendError::Filtered`] if the hook drops the message
    pub async fn send(&self, message: &[u8], delivery: P::Delivery) -> Result<Option<Receipt>, SendError> {
        self.reference
            .wait(|hooked, now, id| {
                let Some(id) = id else { return Poll::Ready(Err(SendError::NotConnected)) };
                match hooked.send(now, id, message, delivery) {
                    Err(SendError::QuotaExceeded | SendError::PoolExhausted) => Poll::Pending,
                    result => Poll::Ready(result),
                }
            })
            .await
    }

    /// Sends a message if it can be queued now.
    ///
    /// # Errors
    /// The same errors as [`send`](Self::send), and [`SendError::QuotaExceeded`] or [`SendError::PoolExhausted`] while
    /// the memory is full. Retry once earlier messages have been acknowledged.
    pub fn try_send(&self, message: &[u8], delivery: P::Delivery) -> Result<Option<Receipt>, SendError> {
        self.reference
            .update(|hooked, now, id| hooked.send(now, id.ok_or(SendError::NotConnected)?, message, delivery))
    }

    /// Waits for the next message. Returns `None` once the connection is closed and all messages have been received;
    /// see [`closed_reason`](Self::closed_reason). Receipts and progress before the message are discarded; use
    /// [`next`](Self::next) to receive them.
    pub async fn recv(&self) -> Option<Received<'d, P, H>> {
        loop {
            if let EventInfo::Message(delivery) = self.reference.next().await? {
                return Some(Received::new(self.reference.shared(), delivery));
            }
        }
    }

    /// Returns the next message, if one has arrived. Discards receipts and progress like [`recv`](Self::recv).
    pub fn try_recv(&self) -> Option<Received<'d, P, H>> {
        loop {
            if let EventInfo::Message(delivery) = self.reference.try_next()? {
                return Some(Received::new(self.reference.shared(), delivery));
            }
        }
    }

    /// Waits for the next event. Returns `None` once the connection is closed and all events have been taken.
    ///
    /// ```
    /// use rakwire::raknet::{Delivery, Outcome, RakNet, Reliability};
    /// use rakwire_embassy::raknet::Event;
    ///
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/loopback.rs"));
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> { loopback::run(async |stack| {
    /// # let (client, _server) = loopback::peers::<RakNet>(stack);
    /// let connection = client.connect(loopback::SERVER).await?;
    /// let delivery = Delivery::new(Reliability::ReliableWithReceipt);
    /// let sent = connection.send(b"\xFEstate", delivery).await?;
    /// let Some(Event::Receipt { receipt, outcome }) = connection.next().await else { panic!("no receipt") };
    /// assert_eq!((Some(receipt), outcome), (sent, Outcome::Acknowledged));
    /// # Ok(()) }) }
    /// ```
    pub async fn next(&self) -> Option<Event<'d, P, H>> {
        self.reference.next().await.map(|info| self.event(info))
    }

    /// Returns the next event, if there is one.
    pub fn try_next(&self) -> Option<Event<'d, P, H>> {
        self.reference.try_next().map(|info| self.event(info))
    }

    const fn event(&self, info: EventInfo<P>) -> Event<'d, P, H> {
        match info {
            EventInfo::Message(delivery) => Event::Message(Received::new(self.reference.shared(), delivery)),
            EventInfo::Receipt(receipt, outcome) => Event::Receipt { receipt, outcome },
            EventInfo::Progress(progress) => Event::Progress(progress),
            EventInfo::MtuChanged(mtu) => Event::MtuChanged(mtu),
        }
    }

    /// Closes the connection, and waits until the close is complete.
    ///
    /// Reliable messages sent earlier are delivered first, for at most the `close_timeout` of the configuration; then
    /// the remote peer is notified. Messages that arrive during the wait are discarded. The close continues if the
    /// future is dropped.
    pub async fn disconnect(&self) {
        self.reference.update(|hooked, now, id| {
            if let Some(id) = id {
                hooked.peer.disconnect(now, id);
            }
        });
        while self.recv().await.is_some() {}
    }

    /// Returns why the connection was closed, or `None` while it is open or has events that have not been taken.
    #[must_use]
    pub fn closed_reason(&self) -> Option<P::DisconnectReason> {
        self.reference.closed_reason()
    }

    /// Returns the maximum length in bytes of a message for [`send`](Self::send), which a remote with the same
    /// configuration and memory can receive. Returns `None` once the connection is closed.
    #[must_use]
    pub fn max_message_len(&self) -> Option<usize> {
        self.reference.update(|hooked, _, id| hooked.peer.max_message_len(id?))
    }

    /// Returns the counters and measurements of the connection, or `None` once it is closed.
    #[must_use]
    pub fn stats(&self) -> Option<P::ConnectionStats> {
        self.reference.stats()
    }

    /// Returns the id of the connection for a [hook](crate::Handle::with_hook), or `None` once the peer has removed the
    /// connection.
    #[must_use]
    pub fn id(&self) -> Option<ConnectionId> {
        self.reference.id()
    }

    /// Returns the address of the remote peer.
    #[must_use]
    pub const fn remote(&self) -> SocketAddr {
        self.remote
    }

    /// Returns the identity of the remote peer: in RakNet its GUID.
    #[must_use]
    pub const fn identity(&self) -> P::Identity {
        self.identity
    }
}
