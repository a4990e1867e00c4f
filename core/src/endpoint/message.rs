//! The bytes of a message.

use super::protocol::Protocol;
use crate::chunks::{Chunks, Piece};
use crate::storage::{Block, BlockLink, Pool};

/// The bytes of a message, in one piece or several.
///
/// ```
/// use rakwire::raknet::{Capacity, Config, Delivery, Event, Peer};
/// use rakwire::sim::{Conditions, Pair};
///
/// # let mut config = Config::new([1; 32]);
/// # config.max_incoming = 1;
/// # let server = Peer::with_capacity(Capacity::default(), config);
/// # let client = Peer::with_capacity(Capacity::default(), Config::new([2; 32]));
/// let mut pair = Pair::new(client, server, Conditions::default(), 7);
/// let id = pair.a.connect(pair.now, pair.b_address)?;
/// while !matches!(pair.a.poll_event(), Some(Event::Connected { .. })) {
///     assert!(pair.step());
/// }
/// pair.a.send(pair.now, id, b"\xFEhello", Delivery::RELIABLE)?;
/// loop {
///     assert!(pair.step());
///     if let Some(Event::Message { message, .. }) = pair.b.poll_event() {
///         assert!(message.chunks().flatten().eq(b"\xFEhello"));
///         assert_eq!(message.copy_to(&mut [0; 8]), Some(&b"\xFEhello"[..]));
///         break;
///     }
/// }
/// let before = pair.b.blocks_available();
/// pair.b.give_back();
/// assert!(pair.b.blocks_available() > before);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Message<'p, P: Protocol> {
    pool: &'p Pool<'p, P::BlockHeader>,
    first: BlockLink,
}

impl<P: Protocol> Clone for Message<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: Protocol> Copy for Message<'_, P> {}

impl<'p, P: Protocol> Message<'p, P> {
    pub(crate) const fn new(pool: &'p Pool<'p, P::BlockHeader>, first: Block) -> Self {
        Self { pool, first: Some(first) }
    }

    pub(crate) const fn empty(pool: &'p Pool<'p, P::BlockHeader>) -> Self {
        Self { pool, first: None }
    }

    /// The length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.first.map_or(0, |first| self.pool.size(first))
    }

    /// Whether there are no bytes at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The pieces, in order.
    pub fn chunks(&self) -> impl Iterator<Item = &'p [u8]> + use<'p, P> {
        let (pool, mut at) = (self.pool, self.first);
        core::iter::from_fn(move || {
            let block = at?;
            at = pool.next(block);
            Some(pool.contents(block))
        })
    }

    /// All bytes at once, if they are in one piece.
    #[must_use]
    pub fn as_slice(&self) -> Option<&'p [u8]> {
        let mut chunks = self.chunks();
        let first = chunks.next().unwrap_or(&[]);
        if chunks.next().is_none() { Some(first) } else { None }
    }

    /// Copies the bytes to the front of `buffer` and returns them there; nothing when they do not fit.
    #[must_use]
    pub fn copy_to<'b>(&self, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
        match self.first {
            Some(first) => self.pool.copy(first, buffer),
            None => Some(&[]),
        }
    }

    /// The bytes in a vector.
    #[cfg(feature = "alloc")]
    #[must_use]
    pub fn to_vec(&self) -> alloc::vec::Vec<u8> {
        let mut bytes = alloc::vec::Vec::with_capacity(self.len());
        self.chunks().for_each(|chunk| bytes.extend_from_slice(chunk));
        bytes
    }
}

impl<P: Protocol> Chunks for Message<'_, P> {
    fn total(&self) -> usize {
        self.len()
    }

    fn piece(&self, at: Piece) -> (&[u8], Option<Piece>) {
        self.pool.piece(self.first, at)
    }
}

/// Its length; the bytes are those of the application.
#[cfg(feature = "defmt")]
impl<P: Protocol> defmt::Format for Message<'_, P> {
    fn format(&self, f: defmt::Formatter<'_>) {
        defmt::write!(f, "{=usize} bytes", self.len());
    }
}
