//! The interface of the two drivers: a connection that is opened, used and closed frame by frame.

use std::fmt::Debug;

use rakwire::raknet::Receipt;

use crate::outbox::Link;

/// A change of a connection, or a message of the server.
#[derive(Debug)]
pub(super) enum Happened<Failure, End> {
    Connected,
    Failed(Failure),
    Ended(End),
    MtuChanged,
    /// A message with this receipt has arrived, or is lost.
    Settled(Receipt),
    Message(Vec<u8>),
}

/// A connection to a server, as implemented for this target.
pub(super) trait Driver: Debug + Link {
    /// The reason why it could not be opened.
    type Failure;
    /// The reason why it ended.
    type End;

    /// The reason of a connection that this client has closed.
    const ENDED_HERE: Self::End;

    /// Handles received datagrams and due timers.
    fn update(&mut self);

    /// Removes and returns the next event.
    fn poll(&mut self) -> Option<Happened<Self::Failure, Self::End>>;

    /// Returns the length of the longest message, or `None` once the connection has ended.
    fn max_message_len(&mut self) -> Option<usize>;

    /// Sends the messages of the frame.
    fn flush(&mut self);
}
