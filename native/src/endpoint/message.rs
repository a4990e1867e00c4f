//! A received message.

/// A received message. `D` is its delivery: in RakNet a reliability and a channel, in the Game Protocol a reliability.
/// [`Connection`](super::Connection) has an example.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message<D> {
    /// The bytes; in RakNet the first one is the message id. They were copied once, out of the memory of the connection; those
    /// of a message of RakNet with 64 KiB or more were put together here.
    /// `Bytes::from(message)` of the crate `bytes` takes them over without another copy (feature `bytes`).
    pub bytes: Vec<u8>,
    /// How it was sent. RakNet's priority is not on the wire, so it is the default here.
    pub delivery: D,
}

/// Takes the bytes over without a copy (feature `bytes`).
///
/// ```
/// use bytes::Bytes;
/// use rakwire_native::{Delivery, Message};
///
/// let message = Message { bytes: vec![0x86, 1, 2], delivery: Delivery::RELIABLE };
/// let memory = message.bytes.as_ptr();
/// let bytes = Bytes::from(message);
/// assert_eq!((bytes.as_ptr(), &bytes[..]), (memory, &[0x86, 1, 2][..]));
/// ```
#[cfg(feature = "bytes")]
impl<D> From<Message<D>> for bytes::Bytes {
    fn from(message: Message<D>) -> Self {
        Self::from(message.bytes)
    }
}
