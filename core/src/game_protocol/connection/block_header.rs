//! What the parts of a connection share: the headers of its blocks in the pool, what it borrows from its peer, how it ended, and
//! the bits of a window over sequences.

use crate::endpoint;
use crate::game_protocol::config::GameProtocol;
use crate::game_protocol::wire::Reliability;
use crate::storage::BlockLink;
use crate::time::Instant;

/// The header of the first block of a chunk or a message: one variant for each role that it can have.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum BlockHeader {
    /// The block is free, or continues a chunk or a message.
    #[default]
    Raw,
    /// A chunk that waits to be sent for the first time, and since when.
    Queued(OutgoingChunk, Instant),
    /// A reliable chunk that is not acknowledged, and when it was sent last.
    InFlight(OutgoingChunk, Instant),
    /// The record of a reliable message that is sent in several chunks.
    SplitSend(SplitSend),
    /// A message that arrived, for the application.
    Received(Reliability),
    /// A chunk that arrived of a message that lacks others.
    Chunk(ReceivedChunk),
    /// The record of a message that arrives in several chunks.
    Partial(Partial),
}

/// A chunk to send.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OutgoingChunk {
    /// The slot of the connection.
    pub(crate) owner: u16,
    pub(crate) sequence: u16,
    pub(crate) index: u8,
    /// The index of the last chunk of the message.
    pub(crate) last: u8,
    /// How often it was sent.
    pub(crate) transmissions: u8,
    pub(crate) reliability: Reliability,
}

/// The record of a reliable message that is sent in several chunks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SplitSend {
    /// The slot of the connection.
    pub(crate) owner: u16,
    pub(crate) sequence: u16,
    /// Chunks that are not acknowledged.
    pub(crate) unacknowledged: u16,
}

/// A chunk that arrived.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReceivedChunk {
    /// The slot of the connection.
    pub(crate) owner: u16,
    pub(crate) sequence: u16,
    pub(crate) index: u8,
}

/// The record of a message that arrives in several chunks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Partial {
    /// When a chunk of it arrived last.
    pub(crate) updated_at: Instant,
    /// The chunks that are there, linked by `after`.
    pub(crate) chunks: BlockLink,
    /// Blocks that the pool promised for chunks that are still to come.
    pub(crate) promised: u16,
    /// How many chunks are there.
    pub(crate) received: u16,
    /// The slot of the connection.
    pub(crate) owner: u16,
    pub(crate) sequence: u16,
    /// The highest index of the chunks that are there.
    pub(crate) highest: u8,
    /// The index of the last chunk, once it is known.
    pub(crate) last: Option<u8>,
    pub(crate) reliability: Reliability,
}

impl BlockHeader {
    /// The key under which the index finds the block, if it is in the index.
    pub(super) const fn key(&self) -> Option<u64> {
        match self {
            Self::InFlight(chunk, _) => Some(key::in_flight(chunk.owner, chunk.sequence, chunk.index)),
            Self::SplitSend(split_send) => Some(key::split_send(split_send.owner, split_send.sequence)),
            Self::Chunk(chunk) => Some(key::chunk(chunk.owner, chunk.sequence, chunk.index)),
            Self::Partial(partial) => Some(key::partial(partial.owner, partial.sequence)),
            Self::Raw | Self::Queued(..) | Self::Received(_) => None,
        }
    }

    /// The chunk to send that this block begins.
    pub(super) fn outgoing(&self) -> &OutgoingChunk {
        const NONE: &OutgoingChunk = &OutgoingChunk {
            owner: 0,
            sequence: 0,
            index: 0,
            last: 0,
            transmissions: 0,
            reliability: Reliability::Unreliable,
        };
        match self {
            Self::Queued(chunk, _) | Self::InFlight(chunk, _) => chunk,
            Self::Raw | Self::SplitSend(_) | Self::Received(_) | Self::Chunk(_) | Self::Partial(_) => {
                debug_assert!(false, "not a chunk to send: {self:?}");
                NONE
            }
        }
    }

    /// When the chunk in flight that this block begins was sent last.
    pub(super) fn sent_at(&self) -> Instant {
        let Self::InFlight(_, sent_at) = self else {
            debug_assert!(false, "not a chunk in flight: {self:?}");
            return Instant::ZERO;
        };
        *sent_at
    }

    /// The record of a message that arrives in several chunks.
    pub(super) fn partial(&self) -> &Partial {
        let Self::Partial(partial) = self else {
            debug_assert!(false, "not the record of a message that arrives in several chunks: {self:?}");
            return Partial::NONE;
        };
        partial
    }

    /// How a message that arrived was sent.
    pub(crate) fn delivery(&self) -> Reliability {
        let Self::Received(reliability) = self else {
            debug_assert!(false, "not a message that arrived: {self:?}");
            return Reliability::default();
        };
        *reliability
    }
}

impl Partial {
    /// Stands in for a record where a block has another role, which would be a bug.
    const NONE: &Self = &Self {
        updated_at: Instant::ZERO,
        chunks: None,
        promised: 0,
        received: 0,
        owner: 0,
        sequence: 0,
        highest: 0,
        last: None,
        reliability: Reliability::Unreliable,
    };
}

/// The block that the index finds under `key`.
pub(super) fn find(cx: &mut Context<'_, '_>, key: u64) -> BlockLink {
    cx.index.find(cx.pool, key, |header| header.key() == Some(key))
}

/// The keys of the index. Each says all about a block: its role, its connection, the sequence and the chunk.
pub(super) mod key {
    const fn of(role: u64, owner: u16, sequence: u16, index: u8) -> u64 {
        role << 40 | (owner as u64) << 24 | (sequence as u64) << 8 | index as u64
    }

    pub(in super::super) const fn in_flight(owner: u16, sequence: u16, index: u8) -> u64 {
        of(0, owner, sequence, index)
    }

    pub(in super::super) const fn split_send(owner: u16, sequence: u16) -> u64 {
        of(1, owner, sequence, 0)
    }

    pub(in super::super) const fn chunk(owner: u16, sequence: u16, index: u8) -> u64 {
        of(2, owner, sequence, index)
    }

    pub(in super::super) const fn partial(owner: u16, sequence: u16) -> u64 {
        of(3, owner, sequence, 0)
    }
}

/// Each block of a peer has a header, so one that is larger takes memory from everything.
const _: () = assert!(size_of::<BlockHeader>() <= if cfg!(target_pointer_width = "64") { 32 } else { 24 });

/// What a connection borrows from its peer for the time of one call.
pub(crate) type Context<'x, 'a> = endpoint::Context<'x, 'a, GameProtocol>;

/// What the application is told at the end.
pub(super) type Ending = endpoint::Ending<GameProtocol>;

/// Sequences that both windows span, as the original's (docs/game-protocol.md#window).
pub(super) const WINDOW: u16 = 1_024;
const WORDS: usize = WINDOW as usize / 64;

/// One bit for each sequence of a window.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bits([u64; WORDS]);

impl Bits {
    const fn place(sequence: u16) -> (usize, u64) {
        let bit = sequence % WINDOW;
        (bit as usize / 64, 1 << (bit % 64))
    }

    pub(super) fn get(&self, sequence: u16) -> bool {
        let (word, mask) = Self::place(sequence);
        self.0.get(word).is_some_and(|word| word & mask != 0)
    }

    pub(super) fn set(&mut self, sequence: u16) {
        let (word, mask) = Self::place(sequence);
        if let Some(word) = self.0.get_mut(word) {
            *word |= mask;
        }
    }

    pub(super) fn clear(&mut self, sequence: u16) {
        let (word, mask) = Self::place(sequence);
        if let Some(word) = self.0.get_mut(word) {
            *word &= !mask;
        }
    }
}
