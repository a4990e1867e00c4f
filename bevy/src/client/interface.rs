//! The interface that the native driver and the browser driver implement: a connection that is polled once per frame.

use std::fmt::Debug;
use std::time::Duration;

use rakwire::endpoint::{ConnectionId, QueueTarget};
use rakwire::raknet::{ConnectionStats, RakNet, Receipt};

/// An event of a connection.
#[derive(Debug)]
pub(super) enum Happened<Failure, End> {
    Connected,
    Failed(Failure),
    Ended(End),
    MtuChanged,
    /// A message with this receipt was acknowledged or lost.
    Settled(Receipt),
    Message(Vec<u8>),
}

/// A connection to a server.
pub(super) trait Driver: Debug {
    /// The type through which [`Outbox`](crate::outbox::Outbox) sends messages.
    type Target: QueueTarget<RakNet>;
    /// The reason why a connection could not be opened.
    type Failure;
    /// The reason why a connection closed.
    type End;

    /// The reason that is reported after this client has closed the connection.
    const ENDED_HERE: Self::End;

    /// Returns the id by which [`target`](Self::target) identifies the connection.
    fn id(&self) -> ConnectionId;

    /// Returns the object through which messages are sent.
    fn target(&mut self) -> &mut Self::Target;

    /// Returns the counters and measurements, or `None` if the connection is not open.
    fn stats(&mut self) -> Option<ConnectionStats>;

    /// Returns the time for which a closing connection tries to send its queued messages.
    fn close_timeout(&mut self) -> Duration;

    /// Handles received datagrams and expired timers.
    fn update(&mut self);

    /// Removes and returns the next event.
    fn poll(&mut self) -> Option<Happened<Self::Failure, Self::End>>;

    /// Starts connecting to the next address of the server after an attempt has failed. Returns false if there is none,
    /// or if the server has answered.
    fn dial_next(&mut self, _failure: &Self::Failure) -> bool {
        false
    }

    /// Returns the maximum message length in bytes, or `None` if the connection is closed.
    fn max_message_len(&mut self) -> Option<usize>;

    /// Sends the messages that were written in this frame.
    fn flush(&mut self);
}
