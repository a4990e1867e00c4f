//! A message that arrived.

use rakwire::endpoint::{Message, Protocol};

use crate::read_guard::ReadGuard;
use crate::shared::Shared;

/// A message that arrived. It stays where it lies until this is dropped, and while it is kept, no task of the same peer
/// gets another one: read it, drop it, then wait for something else.
///
/// ```
/// use rakwire_embassy::raknet::Received;
///
/// fn first_byte(message: &Received<'_>) -> Option<u8> {
///     message.read(|bytes| bytes.chunks().flatten().next().copied())
/// }
/// ```
#[derive(Debug)]
#[must_use = "it is gone when this is dropped"]
pub struct Received<'d, P: Protocol> {
    bytes: ReadGuard<'d, P>,
    delivery: P::Delivery,
}

impl<'d, P: Protocol> Received<'d, P> {
    pub(crate) const fn new(shared: &'d Shared<'d, P>, delivery: P::Delivery) -> Self {
        Self { bytes: ReadGuard::new(shared), delivery }
    }

    /// How it travelled. RakNet's priority is not on the wire and reads as the default.
    #[must_use]
    pub const fn delivery(&self) -> P::Delivery {
        self.delivery
    }

    /// The length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.read(|message| message.len())
    }

    /// Whether there are no bytes at all, which no message is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads the bytes where they lie, in one piece or several.
    ///
    /// # Panics
    /// If `read` itself asks something of the same peer: take what you need out of it first.
    pub fn read<R>(&self, read: impl FnOnce(Message<'_, P>) -> R) -> R {
        self.bytes.read(read)
    }

    /// Copies the bytes to the front of `buffer` and returns them there; nothing when they do not fit.
    #[must_use]
    pub fn copy_to<'b>(&self, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
        self.read(|message| message.copy_to(buffer))
    }
}
