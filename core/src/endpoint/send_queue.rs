//! A queue of reliable messages that wait for free send memory of their connection (feature `alloc`).

use alloc::borrow::Cow;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use super::protocol::Protocol;
use super::types::{ConnectionId, Receipt, SendError};
use crate::time::Instant;

/// An endpoint that sends the messages of [`SendQueue`]s, such as `polled::Endpoint` of the crate `rakwire-native`.
///
/// Another driver implements it like this:
///
/// ```
/// use std::borrow::Cow;
///
/// use rakwire::Instant;
/// use rakwire::endpoint::{Capacity, ConnectionId, Protocol, QueueTarget, Receipt, SendError, SendQueue};
/// use rakwire::raknet::{Delivery, Peer, RakNet};
///
/// struct Driver {
///     peer: Peer<'static>,
///     now: Instant,
/// }
///
/// impl QueueTarget<RakNet> for Driver {
///     fn send(
///         &mut self,
///         id: ConnectionId,
///         message: &mut Cow<'_, [u8]>,
///         delivery: Delivery,
///     ) -> Result<Option<Receipt>, SendError> {
///         self.peer.send(self.now, id, message, delivery)
///     }
///
///     fn disconnect(&mut self, id: ConnectionId) {
///         self.peer.disconnect(self.now, id);
///     }
///
///     fn now(&self) -> Instant {
///         self.now
///     }
/// }
///
/// let peer = Peer::with_capacity(Capacity::default(), RakNet::config([7; 32]));
/// let mut driver = Driver { peer, now: Instant::ZERO };
/// let id = driver.peer.connect(driver.now, "192.0.2.1:19132".parse()?)?;
/// let mut queue = SendQueue::new(id, 16 << 20);
/// // The connection is not open yet.
/// let refused = queue.send(&mut driver, b"\xFEhello", Delivery::RELIABLE_ORDERED);
/// assert_eq!(refused.unwrap_err().to_string(), "the connection is not open");
/// assert_eq!(queue.bytes(), 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait QueueTarget<P: Protocol> {
    /// Sends a message on a connection. On success it may take the bytes of an owned message; on an error they stay.
    ///
    /// # Errors
    /// The errors of [`Peer::send`](super::Peer::send).
    fn send(
        &mut self,
        id: ConnectionId,
        message: &mut Cow<'_, [u8]>,
        delivery: P::Delivery,
    ) -> Result<Option<Receipt>, SendError>;

    /// Starts closing a connection gracefully: messages that `send` accepted as reliable are delivered first.
    fn disconnect(&mut self, id: ConnectionId);

    /// Returns the current time, for the deadline of a connection that is being closed.
    fn now(&self) -> Instant;
}

/// The outcome of a message that was not refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Queued {
    /// The message was passed to the connection. The receipt is set if the reliability requests one.
    Sent(Option<Receipt>),
    /// The message is reliable, and waits in the queue until the connection has enough free send memory.
    Waiting,
    /// The message is unreliable, and was dropped because the connection lacks send memory.
    Dropped,
}

/// The reason why a [`SendQueue`] refused a message. The message is neither queued nor sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum QueueError {
    /// The message would exceed the limit of the queue.
    ///
    /// The remote peer receives too slowly. Later messages that depend on the refused message would arrive without it,
    /// so most programs close the connection with [`SendQueue::abort`].
    Full,
    /// The connection refused the message for a reason other than a lack of send memory.
    Refused(SendError),
}

impl fmt::Display for QueueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => f.write_str(
                "the waiting messages exceed the limit; disconnect the slow peer, or raise the limit",
            ),
            Self::Refused(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for QueueError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Full => None,
            Self::Refused(error) => Some(error),
        }
    }
}

/// A queue of the reliable messages of one connection that wait for free send memory, oldest first.
///
/// It is for programs that cannot wait when they send, such as a game with a frame loop.
/// [`Peer::send`](super::Peer::send) refuses a message while the connection lacks memory ([`SendError::QuotaExceeded`],
/// [`SendError::PoolExhausted`]). The queue then keeps the message if it is reliable, and drops it otherwise. While
/// messages wait, later reliable messages are queued behind them, so none overtakes another. Call
/// [`retry`](Self::retry) once per frame, after handling the events.
///
/// Keep one queue for each open connection, and drop it once the connection has closed.
#[derive(Clone, Debug)]
pub struct SendQueue<P: Protocol> {
    id: ConnectionId,
    waiting: VecDeque<(P::Delivery, Vec<u8>)>,
    bytes: usize,
    limit: usize,
    /// The deadline of [`close`](Self::close); `None` before `close` is called.
    close_by: Option<Instant>,
}

impl<P: Protocol> SendQueue<P> {
    /// The bytes charged for each waiting message in addition to its length, for its vector and its queue entry.
    ///
    /// Without this charge, one-byte messages would take many times the limit in memory.
    pub const OVERHEAD: usize = 64;

    /// Creates an empty queue for a connection; `limit` bounds the waiting messages in bytes.
    ///
    /// Each message is charged its length plus [`OVERHEAD`](Self::OVERHEAD). With a limit of 0, `send` returns
    /// [`QueueError::Full`] for a reliable message that would have to wait.
    #[must_use]
    pub const fn new(id: ConnectionId, limit: usize) -> Self {
        Self { id, waiting: VecDeque::new(), bytes: 0, limit, close_by: None }
    }

    /// Returns the connection.
    #[must_use]
    pub const fn id(&self) -> ConnectionId {
        self.id
    }

    /// Returns the number of waiting messages.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Returns true if no message waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns the bytes charged for all waiting messages, at most the limit.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Sends a message, or queues it if it is reliable and must wait. A large owned message is not copied.
    ///
    /// For a queued message no receipt is returned. If its reliability requests a receipt, the outcome is reported
    /// later, with a receipt number that the program cannot match.
    ///
    /// # Errors
    /// [`QueueError::Full`] if the message must wait and would exceed the limit, and [`QueueError::Refused`] if it is
    /// empty or the connection refuses it. An error affects neither the connection nor the waiting messages. While
    /// other messages wait, a reliable message is queued without being checked, so an error of the connection is
    /// returned later by [`retry`](Self::retry).
    pub fn send<'m>(
        &mut self,
        target: &mut impl QueueTarget<P>,
        message: impl Into<Cow<'m, [u8]>>,
        delivery: P::Delivery,
    ) -> Result<Queued, QueueError> {
        let mut message = message.into();
        let is_reliable = P::is_reliable(delivery);
        if message.is_empty() {
            return Err(QueueError::Refused(SendError::Empty));
        }
        if is_reliable && !self.waiting.is_empty() {
            return self.push(message, delivery);
        }
        match target.send(self.id, &mut message, delivery) {
            Ok(receipt) => Ok(Queued::Sent(receipt)),
            Err(SendError::QuotaExceeded | SendError::PoolExhausted) if is_reliable => {
                self.push(message, delivery)
            }
            Err(SendError::QuotaExceeded | SendError::PoolExhausted) => Ok(Queued::Dropped),
            Err(error) => Err(QueueError::Refused(error)),
        }
    }

    /// Appends a message to the queue.
    fn push(&mut self, message: Cow<'_, [u8]>, delivery: P::Delivery) -> Result<Queued, QueueError> {
        let bytes = self.bytes.saturating_add(Self::cost(&message));
        if bytes > self.limit {
            return Err(QueueError::Full);
        }
        self.bytes = bytes;
        self.waiting.push_back((delivery, message.into_owned()));
        Ok(Queued::Waiting)
    }

    const fn cost(message: &[u8]) -> usize {
        message.len().saturating_add(Self::OVERHEAD)
    }

    /// Sends as many waiting messages as the connection accepts. After [`close`](Self::close), it closes the connection
    /// once the queue is empty or the deadline has passed.
    ///
    /// Returns the number of messages discarded because the deadline of [`close`](Self::close) has passed. A message
    /// that a hook drops is skipped, and later messages are sent.
    ///
    /// # Errors
    /// The [`SendError`] of a message that the connection refuses for a reason other than a lack of memory, for example
    /// [`SendError::NotConnected`] after it has closed. The queue is then aborted and empty, because later messages
    /// would arrive with a gap.
    pub fn retry(&mut self, target: &mut impl QueueTarget<P>) -> Result<usize, SendError> {
        while let Some((delivery, message)) = self.waiting.pop_front() {
            let cost = Self::cost(&message);
            let mut message = Cow::Owned(message);
            match target.send(self.id, &mut message, delivery) {
                Ok(_) | Err(SendError::Filtered) => self.bytes = self.bytes.saturating_sub(cost),
                Err(SendError::QuotaExceeded | SendError::PoolExhausted) => {
                    self.waiting.push_front((delivery, message.into_owned()));
                    let is_late = self.close_by.is_some_and(|until| target.now() >= until);
                    return Ok(if is_late { self.abort(target) } else { 0 });
                }
                Err(error) => {
                    self.abort(target);
                    return Err(error);
                }
            }
        }
        if self.close_by.is_some() {
            target.disconnect(self.id);
        }
        Ok(0)
    }

    /// Closes the connection once the queue is empty, or after `timeout`; messages still waiting then are discarded.
    ///
    /// Continue to call [`retry`](Self::retry). A second call does not change the deadline. Messages can still be added
    /// until the queue is empty.
    ///
    /// # Errors
    /// The errors of [`retry`](Self::retry).
    pub fn close(&mut self, target: &mut impl QueueTarget<P>, timeout: Duration) -> Result<usize, SendError> {
        self.close_by.get_or_insert_with(|| target.now() + timeout);
        self.retry(target)
    }

    /// Closes the connection, discards the waiting messages and returns their number. Messages already passed to the
    /// connection are delivered first.
    pub fn abort(&mut self, target: &mut impl QueueTarget<P>) -> usize {
        let discarded = self.waiting.len();
        self.waiting.clear();
        self.bytes = 0;
        target.disconnect(self.id);
        discarded
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::game_protocol::{self, GameProtocol};
    use crate::raknet::{Delivery, RakNet};

    /// The first byte of messages that the connection refuses.
    const REFUSED: u8 = 0x87;
    /// The first byte of messages that a hook drops.
    const FILTERED: u8 = 0x88;

    /// A connection that accepts `room` messages.
    struct Connection<P: Protocol> {
        room: usize,
        sent: Vec<(Vec<u8>, P::Delivery)>,
        is_open: bool,
        now: Instant,
    }

    impl<P: Protocol> Connection<P> {
        fn new(room: usize) -> Self {
            Self { room, sent: Vec::new(), is_open: true, now: Instant::ZERO }
        }

        fn numbers(&self) -> Vec<u8> {
            self.sent.iter().flat_map(|(message, _)| message.last()).copied().collect()
        }
    }

    impl<P: Protocol> QueueTarget<P> for Connection<P> {
        fn send(
            &mut self,
            _: ConnectionId,
            message: &mut Cow<'_, [u8]>,
            delivery: P::Delivery,
        ) -> Result<Option<Receipt>, SendError> {
            if !self.is_open {
                return Err(SendError::NotConnected);
            }
            match message[..] {
                [REFUSED, ..] => return Err(SendError::NeverFits),
                [FILTERED, ..] => return Err(SendError::Filtered),
                _ => {}
            }
            self.room = self.room.checked_sub(1).ok_or(SendError::QuotaExceeded)?;
            self.sent.push((core::mem::take(message).into_owned(), delivery));
            Ok(None)
        }

        fn disconnect(&mut self, _: ConnectionId) {
            self.is_open = false;
        }

        fn now(&self) -> Instant {
            self.now
        }
    }

    fn queue<P: Protocol>(limit: usize) -> SendQueue<P> {
        SendQueue::new(ConnectionId::without_peer(0), limit)
    }

    /// Sends reliable and unreliable messages on a connection that accepts few of them.
    fn keeps_reliable_messages<P: Protocol>(reliable: P::Delivery, unreliable: P::Delivery) {
        let (mut queue, mut connection) = (queue::<P>(1_000), Connection::<P>::new(1));
        let mut send = |connection: &mut Connection<P>, number: u8, delivery| {
            queue.send(connection, vec![0x86, number], delivery)
        };
        assert_eq!(send(&mut connection, 1, reliable), Ok(Queued::Sent(None)));
        assert_eq!(send(&mut connection, 2, unreliable), Ok(Queued::Dropped));
        assert_eq!(send(&mut connection, 3, reliable), Ok(Queued::Waiting));
        connection.room = 2;
        // The connection accepts messages, but a reliable message does not overtake waiting messages.
        assert_eq!(send(&mut connection, 4, reliable), Ok(Queued::Waiting));
        assert_eq!(send(&mut connection, 5, unreliable), Ok(Queued::Sent(None)));
        assert_eq!(queue.retry(&mut connection), Ok(0));
        assert_eq!((connection.numbers(), queue.len()), (vec![1, 5, 3], 1));
        connection.room = 1;
        assert_eq!(queue.retry(&mut connection), Ok(0));
        assert_eq!(connection.sent.last(), Some(&(vec![0x86, 4], reliable)));
        assert_eq!((queue.is_empty(), queue.bytes(), connection.is_open), (true, 0, true));
    }

    #[test]
    fn reliable_messages_wait_in_order_and_unreliable_messages_are_dropped() {
        keeps_reliable_messages::<RakNet>(Delivery::RELIABLE_ORDERED, Delivery::UNRELIABLE);
        let (reliable, unreliable) =
            (game_protocol::Reliability::Reliable, game_protocol::Reliability::Unreliable);
        keeps_reliable_messages::<GameProtocol>(reliable, unreliable);
    }

    #[test]
    fn each_waiting_message_is_charged_the_overhead() {
        let (mut queue, mut connection) = (queue::<RakNet>(650), Connection::new(0));
        for number in 1..=10 {
            assert_eq!(queue.send(&mut connection, &[0x86][..], Delivery::RELIABLE), Ok(Queued::Waiting));
            assert_eq!(queue.bytes(), 65 * number);
        }
        assert_eq!(queue.send(&mut connection, &[0x86][..], Delivery::RELIABLE), Err(QueueError::Full));
        assert_eq!((queue.len(), queue.bytes()), (10, 650));
    }

    #[test]
    fn close_waits_until_the_queue_is_empty() {
        let (mut queue, mut connection) = (queue::<RakNet>(1_000), Connection::new(0));
        assert_eq!(queue.send(&mut connection, &[0x86, 1][..], Delivery::RELIABLE), Ok(Queued::Waiting));
        assert_eq!(queue.close(&mut connection, Duration::from_secs(1)), Ok(0));
        assert!(connection.is_open);
        // The deadline has passed, but the connection accepts messages again.
        (connection.room, connection.now) = (1, Instant::from_micros(2_000_000));
        assert_eq!(queue.retry(&mut connection), Ok(0));
        assert_eq!((connection.numbers(), connection.is_open), (vec![1], false));
    }

    #[test]
    fn a_second_close_does_not_postpone_the_deadline() {
        let (mut queue, mut connection) = (queue::<RakNet>(1_000), Connection::new(0));
        assert_eq!(queue.send(&mut connection, &[0x86][..], Delivery::RELIABLE), Ok(Queued::Waiting));
        let second = Duration::from_secs(1);
        assert_eq!(queue.close(&mut connection, second), Ok(0));
        connection.now = Instant::from_micros(999_999);
        assert_eq!(queue.close(&mut connection, second), Ok(0));
        assert_eq!((queue.len(), connection.is_open), (1, true));
        connection.now = Instant::from_micros(1_000_000);
        assert_eq!(queue.retry(&mut connection), Ok(1));
        assert_eq!((queue.len(), queue.bytes(), connection.is_open), (0, 0, false));
    }

    #[test]
    fn retry_aborts_when_the_connection_refuses_a_waiting_message() {
        let (mut queue, mut connection) = (queue::<RakNet>(1_000), Connection::new(0));
        for message in [&[0x86, 1][..], &[0x86, 2]] {
            let sent = queue.send(&mut connection, message, Delivery::RELIABLE);
            assert_eq!(sent, Ok(Queued::Waiting));
        }
        assert_eq!(
            queue.send(&mut connection, vec![], Delivery::RELIABLE),
            Err(QueueError::Refused(SendError::Empty))
        );
        assert_eq!(queue.send(&mut connection, vec![REFUSED], Delivery::RELIABLE), Ok(Queued::Waiting));
        connection.room = 5;
        assert_eq!(queue.retry(&mut connection), Err(SendError::NeverFits));
        assert_eq!((connection.numbers(), queue.len(), connection.is_open), (vec![1, 2], 0, false));
        let sent = queue.send(&mut connection, vec![0x86], Delivery::RELIABLE);
        assert_eq!(sent, Err(QueueError::Refused(SendError::NotConnected)));
    }
    #[test]
    fn retry_skips_a_message_that_a_hook_drops() {
        let (mut queue, mut connection) = (queue::<RakNet>(1_000), Connection::new(0));
        for message in [&[0x86, 1][..], &[FILTERED, 2], &[0x86, 3]] {
            let sent = queue.send(&mut connection, message, Delivery::RELIABLE);
            // While another message waits, a message is queued without being offered to the connection.
            assert_eq!(sent, Ok(Queued::Waiting));
        }
        connection.room = 5;
        assert_eq!(queue.retry(&mut connection), Ok(0));
        assert_eq!((connection.numbers(), queue.bytes(), connection.is_open), (vec![1, 3], 0, true));
    }

    #[test]
    fn abort_returns_the_number_of_discarded_messages() {
        let (mut queue, mut connection) = (queue::<RakNet>(1_000), Connection::new(0));
        for _ in 0..3 {
            assert_eq!(queue.send(&mut connection, &[0x86][..], Delivery::RELIABLE), Ok(Queued::Waiting));
        }
        assert_eq!(queue.abort(&mut connection), 3);
        assert_eq!((queue.len(), queue.bytes(), connection.is_open), (0, 0, false));
    }
}
