//! A connection, as tasks use it.

use core::net::SocketAddr;
use core::task::Poll;

use rakwire::endpoint::{Outcome, Progress, Protocol, Receipt, SendError};

use crate::received::Received;
use crate::reference::ConnectionRef;
use crate::shared::Notice;

/// Something that happened on a connection.
///
/// ```
/// use rakwire_embassy::raknet::Event;
///
/// fn describe(event: &Event<'_>) -> &'static str {
///     match event {
///         Event::Message(_) => "a message arrived",
///         Event::Receipt { .. } => "it is known what became of a message",
///         _ => "something else",
///     }
/// }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'d, P: Protocol> {
    /// A message arrived.
    Message(Received<'d, P>),
    /// It is known what became of a message that was sent with a receipt; only in RakNet.
    Receipt {
        /// What `send` returned.
        receipt: Receipt,
        /// What became of the message.
        outcome: Outcome,
    },
    /// A message in parts has come further; only in RakNet
    /// ([`Config::progress_interval`](rakwire::raknet::Config::progress_interval)).
    Progress(Progress),
}

/// An open connection with another peer.
///
/// Clones refer to the same connection, for several tasks: one that reads and one that sends. When the last one is
/// dropped, the connection ends: what was sent reliably before is delivered, and then the other peer is told.
///
/// Every future may be dropped at any point: then nothing was taken or sent.
///
/// ```
/// use embassy_time::{Duration, Ticker};
/// use rakwire::raknet::{Delivery, SendError};
/// use rakwire_embassy::raknet::Connection;
///
/// /// Tells a temperature a hundred times a second; only the newest one is worth anything.
/// async fn report(connection: Connection<'static>, read: fn() -> [u8; 2]) -> Result<(), SendError> {
///     let mut ticker = Ticker::every(Duration::from_hz(100));
///     loop {
///         let [high, low] = read();
///         connection.send(&[0xFE, high, low], Delivery::UNRELIABLE_SEQUENCED).await?;
///         ticker.next().await;
///     }
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Connection<'d, P: Protocol> {
    reference: ConnectionRef<'d, P>,
    remote: SocketAddr,
    identity: P::Identity,
}

impl<'d, P: Protocol> Connection<'d, P> {
    pub(crate) const fn new(
        reference: ConnectionRef<'d, P>,
        remote: SocketAddr,
        identity: P::Identity,
    ) -> Self {
        Self { reference, remote, identity }
    }

    /// Sends a message. In RakNet the first byte is its id; 0x86 and above are free for applications.
    ///
    /// While there is no room for the message this waits until others were acknowledged. When it returns, the message
    /// was taken for sending, not yet delivered. With one of RakNet's receipt reliabilities the name of the receipt
    /// comes back; [`next`](Self::next) tells what became of the message.
    ///
    /// # Errors
    /// [`SendError::NotConnected`] once the connection has ended or is ending, [`SendError::Empty`],
    /// [`SendError::NeverFits`] when the message can never fit what one connection may hold. In RakNet [`SendError::ReservedId`]
    /// when the first byte is below 0x1B; in the Game Protocol [`SendError::TooLong`] above 129,024 bytes.
    pub async fn send(&self, message: &[u8], delivery: P::Delivery) -> Result<Option<Receipt>, SendError> {
        self.reference
            .wait(|peer, now, id| {
                let Some(id) = id else { return Poll::Ready(Err(SendError::NotConnected)) };
                match peer.send(now, id, message, delivery) {
                    Err(SendError::QuotaExceeded | SendError::PoolExhausted) => Poll::Pending,
                    result => Poll::Ready(result),
                }
            })
            .await
    }

    /// Sends a message if there is room for it now.
    ///
    /// # Errors
    /// As [`send`](Self::send), and [`SendError::QuotaExceeded`] or [`SendError::PoolExhausted`] when there is no room
    /// until others were acknowledged. Nothing of the message was taken then.
    ///
    /// ```
    /// use rakwire::raknet::Delivery;
    /// use rakwire_embassy::raknet::Connection;
    ///
    /// /// Sends the newest position, or none when the path is too slow for it.
    /// fn update(connection: &Connection<'_>, position: [u8; 4]) -> bool {
    ///     let [x, y, z, w] = position;
    ///     connection.try_send(&[0x91, x, y, z, w], Delivery::UNRELIABLE_SEQUENCED).is_ok()
    /// }
    /// ```
    pub fn try_send(&self, message: &[u8], delivery: P::Delivery) -> Result<Option<Receipt>, SendError> {
        self.reference
            .update(|peer, now, id| peer.send(now, id.ok_or(SendError::NotConnected)?, message, delivery))
    }

    /// The next message; waits until one arrives. Nothing once the connection has ended and every message that arrived
    /// before was taken: [`closed_reason`](Self::closed_reason) says why. Receipts and progress that come before it are
    /// passed over; who wants them asks for [`next`](Self::next).
    pub async fn recv(&self) -> Option<Received<'d, P>> {
        loop {
            if let Notice::Message(delivery) = self.reference.next().await? {
                return Some(Received::new(self.reference.shared(), delivery));
            }
        }
    }

    /// The next message, if one has arrived.
    ///
    /// ```
    /// use rakwire_embassy::raknet::Connection;
    ///
    /// /// How many messages wait, which are gone then.
    /// fn drain(connection: &Connection<'_>) -> usize {
    ///     core::iter::from_fn(|| connection.try_recv()).count()
    /// }
    /// ```
    pub fn try_recv(&self) -> Option<Received<'d, P>> {
        loop {
            if let Notice::Message(delivery) = self.reference.try_next()? {
                return Some(Received::new(self.reference.shared(), delivery));
            }
        }
    }

    /// What happens next; nothing once the connection has ended and everything was told.
    ///
    /// ```
    /// use rakwire::raknet::{Delivery, Outcome, Reliability, SendError};
    /// use rakwire_embassy::raknet::{Connection, Event};
    ///
    /// async fn deliver(connection: &Connection<'_>, state: &[u8]) -> Result<bool, SendError> {
    ///     let sent = connection.send(state, Delivery::new(Reliability::ReliableWithReceipt)).await?;
    ///     while let Some(event) = connection.next().await {
    ///         match event {
    ///             Event::Receipt { receipt, outcome } if Some(receipt) == sent => {
    ///                 return Ok(outcome == Outcome::Acknowledged);
    ///             }
    ///             _ => {}
    ///         }
    ///     }
    ///     Ok(false)
    /// }
    /// ```
    pub async fn next(&self) -> Option<Event<'d, P>> {
        self.reference.next().await.map(|notice| self.event(notice))
    }

    /// What happened next, if anything.
    pub fn try_next(&self) -> Option<Event<'d, P>> {
        self.reference.try_next().map(|notice| self.event(notice))
    }

    const fn event(&self, notice: Notice<P>) -> Event<'d, P> {
        match notice {
            Notice::Message(delivery) => Event::Message(Received::new(self.reference.shared(), delivery)),
            Notice::Receipt(receipt, outcome) => Event::Receipt { receipt, outcome },
            Notice::Progress(progress) => Event::Progress(progress),
        }
    }

    /// Ends the connection: what was sent reliably before is delivered, for at most the `close_timeout` of the
    /// configuration, then the other peer is told. Waits until that is done; what arrives meanwhile is thrown away. The
    /// end goes on when the future is dropped.
    ///
    /// ```
    /// use rakwire::raknet::{Delivery, SendError};
    /// use rakwire_embassy::raknet::Connection;
    ///
    /// async fn leave(connection: Connection<'static>) -> Result<(), SendError> {
    ///     connection.send(b"\x90bye", Delivery::RELIABLE_ORDERED).await?;
    ///     connection.disconnect().await;
    ///     Ok(())
    /// }
    /// ```
    pub async fn disconnect(&self) {
        self.reference.update(|peer, now, id| {
            if let Some(id) = id {
                peer.disconnect(now, id);
            }
        });
        while self.recv().await.is_some() {}
    }

    /// Why the connection ended; nothing while it has not, or while what it told before was not read.
    #[must_use]
    pub fn closed_reason(&self) -> Option<P::DisconnectReason> {
        self.reference.closed_reason()
    }

    /// The counters and measurements of the connection; nothing once it has ended.
    #[must_use]
    pub fn stats(&self) -> Option<P::ConnectionStats> {
        self.reference.stats()
    }

    /// The address of the other peer.
    #[must_use]
    pub const fn remote(&self) -> SocketAddr {
        self.remote
    }

    /// Who the other peer says it is: in RakNet its GUID.
    #[must_use]
    pub const fn identity(&self) -> P::Identity {
        self.identity
    }
}
