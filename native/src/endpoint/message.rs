//! A received message.

/// A received message. `D` is its delivery: in RakNet a reliability and a channel, in the Game Protocol a reliability.
/// [`Connection`](super::Connection) has an example.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message<D> {
    /// The bytes; in RakNet the first one is the message id. They were copied once, out of the memory of the connection.
    /// `bytes::Bytes::from(message.bytes)` takes them over without another copy.
    pub bytes: Vec<u8>,
    /// How it was sent. RakNet's priority is not on the wire, so it is the default here.
    pub delivery: D,
}
