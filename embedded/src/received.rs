//! A received message.

use rakwire::endpoint::{Hook, Message, Protocol};

use crate::read_guard::ReadGuard;
use crate::shared::Shared;

/// A received message. Its bytes stay in the memory of the peer until this value is dropped. Until then, no task of the
/// peer receives another event, so drop it before waiting for anything else.
///
/// ```
/// use embassy_futures::join::join;
/// use rakwire::raknet::{Delivery, RakNet};
///
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/loopback.rs"));
/// # fn main() -> Result<(), Box<dyn std::error::Error>> { loopback::run(async |stack| {
/// # let (client, server) = loopback::peers::<RakNet>(stack);
/// # let (here, there) = join(client.connect(loopback::SERVER), server.accept()).await;
/// # let here = here?;
/// here.send(&[0xFE; 300], Delivery::RELIABLE).await?;
/// let message = there.recv().await.ok_or("the connection has ended")?;
/// assert_eq!((message.len(), message.delivery()), (300, Delivery::RELIABLE));
/// // It is in blocks of 128 bytes.
/// message.read(|bytes| assert!(bytes.chunks().count() > 1 && bytes.chunks().flatten().all(|byte| *byte == 0xFE)));
/// assert_eq!(message.copy_to(&mut [0; 299]), None);
/// assert_eq!(message.copy_to(&mut [0; 400]), Some(&[0xFE; 300][..]));
/// # Ok(()) }) }
/// ```
#[derive(Debug)]
#[must_use = "the message is lost when this value is dropped"]
pub struct Received<'d, P: Protocol, H: Hook<P> = ()> {
    bytes: ReadGuard<'d, P, H>,
    delivery: P::Delivery,
}

impl<'d, P: Protocol, H: Hook<P>> Received<'d, P, H> {
    pub(crate) const fn new(shared: &'d Shared<'d, P, H>, delivery: P::Delivery) -> Self {
        Self { bytes: ReadGuard::new(shared), delivery }
    }

    /// Returns the delivery with which the message was sent. RakNet does not transmit the priority, so it has its
    /// default value here.
    #[must_use]
    pub const fn delivery(&self) -> P::Delivery {
        self.delivery
    }

    /// Returns the length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.read(|message| message.len())
    }

    /// Always returns false: messages have at least one byte.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads the bytes in place, in one or more pieces.
    ///
    /// # Panics
    /// If `read` calls a method of the same peer.
    pub fn read<R>(&self, read: impl FnOnce(Message<'_, P>) -> R) -> R {
        self.bytes.read(read)
    }

    /// Copies the bytes to the start of `buffer`, and returns that part. Returns `None` if `buffer` is too short.
    #[must_use]
    pub fn copy_to<'b>(&self, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
        self.read(|message| message.copy_to(buffer))
    }
}

// A derived implementation would require `P: Format`.
#[cfg(feature = "defmt")]
impl<P: Protocol, H: Hook<P>> defmt::Format for Received<'_, P, H> {
    fn format(&self, f: defmt::Formatter<'_>) {
        defmt::write!(f, "{=usize} bytes, {}", self.len(), self.delivery);
    }
}
