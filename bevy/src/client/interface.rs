//! The interface of the native and the browser driver: a connection that is opened, used and closed frame by
//! frame.

use std::fmt::Debug;
use std::time::Duration;

use rakwire::endpoint::{ConnectionId, QueueTarget};
use rakwire::raknet::{ConnectionStats, RakNet, Receipt};

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
pub(super) trait Driver: Debug {
    /// The sender of messages.
    type Target: QueueTarget<RakNet>;
    /// The reason why a connection could not be opened.
    type Failure;
    /// The reason why a connection closed.
    type End;

    /// The reason for a connection that this client has closed.
    const ENDED_HERE: Self::End;

    /// Returns the id of the connection at its [`target`](Self::target).
    fn id(&self) -> ConnectionId;

    /// Returns the sender of messages.
    fn target(&mut self) -> &mut Self::Target;

    /// Returns the counters and measurements, or `None` once the connection has ended.
    fn stats(&mut self) -> Option<ConnectionStats>;

    /// Returns how long a connection that is being closed waits for room.
    fn close_timeout(&mut self) -> Duration;

    /// Handles received datagrams and expired timers.
    fn update(&mut self);

    /// Removes and returns the next event.
    fn poll(&mut self) -> Option<Happened<Self::Failure, Self::End>>;

    /// Returns the maximum message length in bytes, or `None` if the connection is closed.
    fn max_message_len(&mut self) -> Option<usize>;

    /// Sends the messages of the frame.
    fn flush(&mut self);
}
