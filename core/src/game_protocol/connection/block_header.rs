//! What the pool keeps of a block that begins a chunk, a message or a record.

use super::Context;
use crate::game_protocol::wire::Reliability;
use crate::storage::Link;
use crate::time::Instant;

/// What a block is to its connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Part {
    /// A chunk to be sent.
    #[default]
    Leaving,
    /// Counts the chunks of a reliable message that are not acknowledged; holds no bytes.
    Departure,
    /// A chunk that arrived.
    Arrived,
    /// Counts the chunks that arrived of a message; holds no bytes.
    Arrival,
}

/// The header of a block. Which fields mean something depends on its [`Part`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BlockHeader {
    /// When it was given to be sent, was sent last, or had news last.
    pub(crate) at: Instant,
    /// Of an arrival: the chunks that are there, linked by `after`.
    pub(crate) chunks: Link,
    /// Of an arrival: blocks that the pool has promised for the chunks that are missing.
    pub(crate) promised: u16,
    /// Of a departure: chunks to be acknowledged; of an arrival: chunks that are there.
    pub(crate) count: u16,
    pub(crate) slot: u16,
    pub(crate) sequence: u16,
    /// The index of the chunk; of an arrival: the highest that is there.
    pub(crate) chunk: u8,
    /// The index of the last chunk, once it is known.
    pub(crate) last: Option<u8>,
    /// How often it was sent.
    pub(crate) sends: u8,
    pub(crate) part: Part,
    pub(crate) reliability: Reliability,
}

impl BlockHeader {
    /// The number under which the index finds it.
    pub(crate) const fn key(&self) -> u64 {
        let chunk = match self.part {
            Part::Leaving | Part::Arrived => self.chunk,
            Part::Departure | Part::Arrival => 0,
        };
        (self.part as u64) << 40 | (self.slot as u64) << 24 | (self.sequence as u64) << 8 | chunk as u64
    }

    /// Whether this is what `name`, a header with a part, a slot, a sequence and a chunk, names.
    pub(crate) fn is(&self, name: &Self) -> bool {
        self.key() == name.key()
    }
}

/// The block that `name`, a header with a part, a slot, a sequence and a chunk, names.
pub(super) fn find(cx: &mut Context<'_, '_>, name: &BlockHeader) -> Link {
    cx.index.find(cx.pool, name.key(), |header| header.is(name))
}
