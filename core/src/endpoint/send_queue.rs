//! A queue of reliable messages that wait until their connection has room (feature `alloc`).

use alloc::borrow::Cow;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use super::protocol::Protocol;
use super::types::{ConnectionId, Receipt, SendError};
use crate::time::Instant;

/// An endpoint that sends the messages of [`SendQueue`]s, which `polled::Endpoint` of the crate `rakwire-native` is.
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
    /// Sends a message of a connection. It may take the bytes of an owned message, but only if it succeeds.
    ///
    /// # Errors
    /// As [`Peer::send`](super::Peer::send).
    fn send(
        &mut self,
        id: ConnectionId,
        message: &mut Cow<'_, [u8]>,
        delivery: P::Delivery,
    ) -> Result<Option<Receipt>, SendError>;

    /// Starts to close a connection. Reliable messages sent before are delivered first.
    fn disconnect(&mut self, id: ConnectionId);

    /// Returns the current time, for the deadline of a connection that is being closed.
    fn now(&self) -> Instant;
}

/// The outcome of a message that was not refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Queued {
    /// The connection has the message. The receipt is that of a reliability with receipt.
    Sent(Option<Receipt>),
    /// The message is reliable, and waits until the connection has room.
    Waiting,
    /// The message is unreliable, and was dropped because the connection has no room.
    Dropped,
}

/// The reason why a [`SendQueue`] refused a message. Nothing of it was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum QueueError {
    /// The message would exceed the limit of the queue.
    ///
    /// The peer receives too slowly. A message that depends on this one would arrive without it, so most programs end
    /// the connection by [`SendQueue::abort`].
    Full,
    /// The connection refused the message, for a reason other than missing room.
    Refused(SendError),
}

impl fmt::Display for QueueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => {
                f.write_str("more reliable messages wait than the limit allows; disconnect the slow peer")
            }
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

/// The reliable messages of one connection that wait until it has room, in order.
///
/// It is for programs that send without waiting, such as a frame loop. [`Peer::send`](super::Peer::send) refuses a
/// message while the connection has no room ([`SendError::QuotaExceeded`], [`SendError::PoolExhausted`]). This queue then
/// keeps a reliable message, and every later one of the connection, so that none overtakes another. It drops an
/// unreliable one. Call [`retry`](Self::retry) once a frame, after the events were handled.
///
/// The program keeps one queue for each open connection, and drops it with the connection.
#[derive(Clone, Debug)]
pub struct SendQueue<P: Protocol> {
    id: ConnectionId,
    waiting: VecDeque<(P::Delivery, Vec<u8>)>,
    bytes: usize,
    limit: usize,
    /// Set if the connection is closed once nothing waits, and at this time at the latest.
    close_by: Option<Instant>,
}

impl<P: Protocol> SendQueue<P> {
    /// The bytes that a waiting message counts for beyond its own: a vector and the entry of the queue.
    ///
    /// Without them, messages of one byte would take many times the limit.
    pub const OVERHEAD: usize = 64;

    /// Creates an empty queue for a connection, with a limit of the waiting messages in bytes.
    ///
    /// Each message counts for its length and [`OVERHEAD`](Self::OVERHEAD). With the limit 0 no message waits.
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

    /// Returns the bytes that the waiting messages count for, at most the limit.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Sends a message, or lets it wait. A large owned message is not copied.
    ///
    /// A message that waits returns no receipt. Its outcome is reported like that of any other message, but with a number
    /// that the program does not know.
    ///
    /// # Errors
    /// [`QueueError::Full`] if the message must wait and exceeds the limit, and [`QueueError::Refused`] if it is empty or
    /// the connection refuses it. The connection and the messages that wait already are not affected. While other messages
    /// wait, the connection is not asked, so [`retry`](Self::retry) reports a message that it refuses.
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

    /// Lets a message wait behind the others.
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

    /// Sends the waiting messages for which there is room now, and closes the connection if that is due.
    ///
    /// Returns the number of messages that are discarded because the deadline of [`close`](Self::close) has passed. A
    /// message that a hook drops is left out, as by [`Peer::send`](super::Peer::send); those behind it are sent.
    ///
    /// # Errors
    /// Returns the error of a message that the connection refuses for another reason than missing room. It is
    /// [`SendError::NotConnected`] if the connection has ended. The connection is then aborted, and nothing waits any
    /// more, because the messages behind this one would arrive with a gap.
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

    /// Closes the connection as soon as no message waits, and after `timeout` without those that still wait.
    ///
    /// Continue to call [`retry`](Self::retry). A second call does not change the deadline. Messages sent after this call
    /// are sent as well while others wait.
    ///
    /// # Errors
    /// The same as for [`retry`](Self::retry).
    pub fn close(&mut self, target: &mut impl QueueTarget<P>, timeout: Duration) -> Result<usize, SendError> {
        self.close_by.get_or_insert_with(|| target.now() + timeout);
        self.retry(target)
    }

    /// Closes the connection without the messages that wait, and returns their number. Messages that the connection
    /// already has are delivered first.
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

    /// A connection with room for some messages.
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

    /// Sends messages of both kinds with little room: reliable ones stay in order, unreliable ones are dropped.
    fn keeps_reliable_messages<P: Protocol>(reliable: P::Delivery, unreliable: P::Delivery) {
        let (mut queue, mut connection) = (queue::<P>(1_000), Connection::<P>::new(1));
        let mut send = |connection: &mut Connection<P>, number: u8, delivery| {
            queue.send(connection, vec![0x86, number], delivery)
        };
        assert_eq!(send(&mut connection, 1, reliable), Ok(Queued::Sent(None)));
        assert_eq!(send(&mut connection, 2, unreliable), Ok(Queued::Dropped));
        assert_eq!(send(&mut connection, 3, reliable), Ok(Queued::Waiting));
        connection.room = 2;
        // There is room, but a reliable message does not overtake those that wait.
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
    fn reliable_messages_wait_in_order_and_unreliable_ones_are_dropped() {
        keeps_reliable_messages::<RakNet>(Delivery::RELIABLE_ORDERED, Delivery::UNRELIABLE);
        let (reliable, unreliable) =
            (game_protocol::Reliability::Reliable, game_protocol::Reliability::Unreliable);
        keeps_reliable_messages::<GameProtocol>(reliable, unreliable);
    }

    #[test]
    fn small_messages_count_for_more_than_their_bytes() {
        let (mut queue, mut connection) = (queue::<RakNet>(650), Connection::new(0));
        for number in 1..=10 {
            assert_eq!(queue.send(&mut connection, &[0x86][..], Delivery::RELIABLE), Ok(Queued::Waiting));
            assert_eq!(queue.bytes(), 65 * number);
        }
        assert_eq!(queue.send(&mut connection, &[0x86][..], Delivery::RELIABLE), Err(QueueError::Full));
        assert_eq!((queue.len(), queue.bytes()), (10, 650));
    }

    #[test]
    fn the_connection_closes_once_nothing_waits() {
        let (mut queue, mut connection) = (queue::<RakNet>(1_000), Connection::new(0));
        assert_eq!(queue.send(&mut connection, &[0x86, 1][..], Delivery::RELIABLE), Ok(Queued::Waiting));
        assert_eq!(queue.close(&mut connection, Duration::from_secs(1)), Ok(0));
        assert!(connection.is_open);
        // The deadline passes in a long frame, but there is room again.
        (connection.room, connection.now) = (1, Instant::from_micros(2_000_000));
        assert_eq!(queue.retry(&mut connection), Ok(0));
        assert_eq!((connection.numbers(), connection.is_open), (vec![1], false));
    }

    #[test]
    fn the_connection_closes_at_its_deadline_which_a_second_call_does_not_move() {
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
    fn a_refused_message_that_waited_aborts_the_connection() {
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
    fn a_message_that_a_hook_drops_does_not_hold_up_others() {
        let (mut queue, mut connection) = (queue::<RakNet>(1_000), Connection::new(0));
        for message in [&[0x86, 1][..], &[FILTERED, 2], &[0x86, 3]] {
            let sent = queue.send(&mut connection, message, Delivery::RELIABLE);
            // The connection is not asked while another message waits.
            assert_eq!(sent, Ok(Queued::Waiting));
        }
        connection.room = 5;
        assert_eq!(queue.retry(&mut connection), Ok(0));
        assert_eq!((connection.numbers(), queue.bytes(), connection.is_open), (vec![1, 3], 0, true));
    }

    #[test]
    fn an_aborted_queue_returns_the_number_of_discarded_messages() {
        let (mut queue, mut connection) = (queue::<RakNet>(1_000), Connection::new(0));
        for _ in 0..3 {
            assert_eq!(queue.send(&mut connection, &[0x86][..], Delivery::RELIABLE), Ok(Queued::Waiting));
        }
        assert_eq!(queue.abort(&mut connection), 3);
        assert_eq!((queue.len(), queue.bytes(), connection.is_open), (0, 0, false));
    }
}
