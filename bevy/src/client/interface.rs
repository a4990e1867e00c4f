//! The interface of the native and the browser driver: a connection that is opened, used and closed frame by
//! frame.

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
    /// A message with this receipt was acknowledged or lost.
    Settled(Receipt),
    Message(Vec<u8>),
}

/// A connection to a server, as implemented for this target.
pub(super) trait Driver: Debug + Link {
    /// The reason why a connection could not be opened.
    type Failure;
    /// The reason why a connection closed.
    type End;

    /// The reason for a connection that this client has closed.
    const ENDED_HERE: Self::End;

    /// Handles received datagrams and expired timers.
    fn update(&mut self);

    /// Removes and returns the next event.
    fn poll(&mut self) -> Option<Happened<Self::Failure, Self::End>>;

    /// Returns the maximum message length in bytes, or `None` if the connection is closed.
    fn max_message_len(&mut self) -> Option<usize>;

    /// Sends the messages of the frame.
    fn flush(&mut self);
}
