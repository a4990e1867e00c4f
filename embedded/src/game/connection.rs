//! A connection, as its tasks hold it.

use core::net::SocketAddr;
use core::task::Poll;

use rakwire::game_protocol::{ConnectionStats, DisconnectReason, Peer, Reliability, SendError};

use super::protocol::Game;
use super::received::Received;
use crate::hold::Hold;

/// Something that happened on a connection.
///
/// ```
/// use rakwire_embassy::game::Event;
///
/// fn describe(event: &Event<'_>) -> &'static str {
///     match event {
///         Event::Message(_) => "a message arrived",
///         _ => "something else",
///     }
/// }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'d> {
    /// A message arrived.
    Message(Received<'d>),
}

/// An open connection with another peer.
///
/// Clones hold the same connection, for several tasks: one that reads and one that sends. When the last one is dropped,
/// the connection ends: what was sent reliably before is delivered, and then the other peer is told.
///
/// Every future may be dropped at any point: then nothing was taken or sent.
///
/// ```
/// use embassy_time::{Duration, Ticker};
/// use rakwire::game_protocol::{Reliability, SendError};
/// use rakwire_embassy::game::Connection;
///
/// /// Tells a temperature a hundred times a second; what gets lost is not missed.
/// async fn report(connection: Connection<'static>, read: fn() -> [u8; 2]) -> Result<(), SendError> {
///     let mut ticker = Ticker::every(Duration::from_hz(100));
///     loop {
///         connection.send(&read(), Reliability::Unreliable).await?;
///         ticker.next().await;
///     }
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Connection<'d> {
    hold: Hold<'d, Game>,
}

impl<'d> Connection<'d> {
    pub(crate) const fn new(hold: Hold<'d, Game>) -> Self {
        Self { hold }
    }

    /// Sends a message.
    ///
    /// While there is no room for the message this waits until others were acknowledged. When it returns, the message
    /// was taken for sending, not yet delivered.
    ///
    /// # Errors
    /// [`SendError::NotConnected`] once the connection has ended or is ending, [`SendError::Empty`],
    /// [`SendError::TooLong`] above 129,024 bytes, [`SendError::NeverFits`] when the message can never fit half of the
    /// blocks.
    pub async fn send(&self, message: &[u8], reliability: Reliability) -> Result<(), SendError> {
        let attempt = |peer: &mut Peer<'d>, now, id: Option<_>| {
            let Some(id) = id else { return Poll::Ready(Err(SendError::NotConnected)) };
            match peer.send(now, id, message, reliability) {
                Err(SendError::QuotaExceeded | SendError::PoolExhausted) => Poll::Pending,
                result => Poll::Ready(result),
            }
        };
        self.hold.wait(attempt).await
    }

    /// Sends a message if there is room for it now.
    ///
    /// # Errors
    /// As [`send`](Self::send), and [`SendError::QuotaExceeded`] or [`SendError::PoolExhausted`] when there is no room
    /// until others were acknowledged. Nothing of the message was taken then.
    ///
    /// ```
    /// use rakwire::game_protocol::Reliability;
    /// use rakwire_embassy::game::Connection;
    ///
    /// /// Sends the newest position, or none when the path is too slow for it.
    /// fn update(connection: &Connection<'_>, position: [u8; 4]) -> bool {
    ///     connection.try_send(&position, Reliability::Unreliable).is_ok()
    /// }
    /// ```
    pub fn try_send(&self, message: &[u8], reliability: Reliability) -> Result<(), SendError> {
        self.hold
            .act(|peer, now, id| peer.send(now, id.ok_or(SendError::NotConnected)?, message, reliability))
    }

    /// The next message; waits until one arrives. Nothing once the connection has ended and every message that arrived
    /// before was taken: [`closed_reason`](Self::closed_reason) says why.
    pub async fn recv(&self) -> Option<Received<'d>> {
        let reliability = self.hold.next().await?;
        Some(Received::new(self.hold.shared, reliability))
    }

    /// The next message, if one has arrived.
    ///
    /// ```
    /// use rakwire_embassy::game::Connection;
    ///
    /// /// How many messages wait, which are gone then.
    /// fn drain(connection: &Connection<'_>) -> usize {
    ///     core::iter::from_fn(|| connection.try_recv()).count()
    /// }
    /// ```
    pub fn try_recv(&self) -> Option<Received<'d>> {
        let reliability = self.hold.try_next()?;
        Some(Received::new(self.hold.shared, reliability))
    }

    /// What happens next; nothing once the connection has ended and everything was told.
    ///
    /// ```
    /// use rakwire_embassy::game::{Connection, Event};
    ///
    /// async fn count(connection: &Connection<'_>) -> usize {
    ///     let mut messages = 0;
    ///     while let Some(event) = connection.next().await {
    ///         messages += usize::from(matches!(event, Event::Message(_)));
    ///     }
    ///     messages
    /// }
    /// ```
    pub async fn next(&self) -> Option<Event<'d>> {
        self.recv().await.map(Event::Message)
    }

    /// What happened next, if anything.
    pub fn try_next(&self) -> Option<Event<'d>> {
        self.try_recv().map(Event::Message)
    }

    /// Ends the connection: what was sent reliably before is delivered, for at most the `close_timeout` of the
    /// configuration, then the other peer is told. Waits until that is done; what arrives meanwhile is thrown away. The
    /// end goes on when the future is dropped.
    ///
    /// ```
    /// use rakwire::game_protocol::{Reliability, SendError};
    /// use rakwire_embassy::game::Connection;
    ///
    /// async fn leave(connection: Connection<'static>) -> Result<(), SendError> {
    ///     connection.send(b"bye", Reliability::Reliable).await?;
    ///     connection.disconnect().await;
    ///     Ok(())
    /// }
    /// ```
    pub async fn disconnect(&self) {
        self.hold.disconnect();
        while self.recv().await.is_some() {}
    }

    /// Why the connection ended; nothing while it has not, or while what it told before was not read.
    #[must_use]
    pub fn closed_reason(&self) -> Option<DisconnectReason> {
        self.hold.closed_reason()
    }

    /// The counters and measurements of the connection; nothing once it has ended.
    #[must_use]
    pub fn stats(&self) -> Option<ConnectionStats> {
        self.hold.look(|peer, id| peer.connection_stats(id))
    }

    /// The address of the other peer.
    #[must_use]
    pub const fn remote(&self) -> SocketAddr {
        self.hold.remote()
    }
}
