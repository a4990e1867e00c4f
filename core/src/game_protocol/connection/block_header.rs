//! Types shared by the parts of a connection: block headers, the context of a call, the last event, and window bits.

use crate::endpoint;
use crate::game_protocol::config::GameProtocol;
use crate::game_protocol::wire::Reliability;
use crate::storage::BlockLink;
use crate::time::Instant;

/// The header of the first block of a chunk or a message, with one variant for each use of a block.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum BlockHeader {
    /// The block is free, or is not the first block of a chunk or message.
    #[default]
    Raw,
    /// A chunk queued for its first transmission, and the time at which it was queued.
    Queued(OutgoingChunk, Instant),
    /// An unacknowledged reliable chunk, and the time of its last transmission.
    InFlight(OutgoingChunk, Instant),
    /// The record of a reliable message of several chunks that is being sent.
    SplitSend(SplitSend),
    /// A received message for the application.
    Received(Reliability),
    /// A received chunk of an incomplete message.
    Chunk(ReceivedChunk),
    /// The record of a message of several chunks that is being received.
    Partial(Partial),
}

/// An outgoing chunk.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OutgoingChunk {
    /// The slot of the connection.
    pub(crate) owner: u16,
    pub(crate) sequence: u16,
    pub(crate) index: u8,
    /// The index of the last chunk of the message.
    pub(crate) last: u8,
    /// The number of transmissions.
    pub(crate) transmissions: u8,
    pub(crate) reliability: Reliability,
}

/// The record of a reliable message of several chunks that is being sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SplitSend {
    /// The slot of the connection.
    pub(crate) owner: u16,
    pub(crate) sequence: u16,
    /// The number of unacknowledged chunks.
    pub(crate) unacknowledged: u16,
}

/// A received chunk.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReceivedChunk {
    /// The slot of the connection.
    pub(crate) owner: u16,
    pub(crate) sequence: u16,
    pub(crate) index: u8,
}

/// The record of a message of several chunks that is being received.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Partial {
    /// The time at which the latest chunk of the message was received.
    pub(crate) updated_at: Instant,
    /// The received chunks, linked by `after`.
    pub(crate) chunks: BlockLink,
    /// The number of blocks reserved in the pool for missing chunks.
    pub(crate) promised: u16,
    /// The number of received chunks.
    pub(crate) received: u16,
    /// The slot of the connection.
    pub(crate) owner: u16,
    pub(crate) sequence: u16,
    /// The highest index of the received chunks.
    pub(crate) highest: u8,
    /// The index of the last chunk, once it is known.
    pub(crate) last: Option<u8>,
    pub(crate) reliability: Reliability,
}

impl BlockHeader {
    /// Returns the key of the block in the index, if it is indexed.
    pub(super) const fn key(&self) -> Option<u64> {
        match self {
            Self::InFlight(chunk, _) => Some(key::in_flight(chunk.owner, chunk.sequence, chunk.index)),
            Self::SplitSend(split_send) => Some(key::split_send(split_send.owner, split_send.sequence)),
            Self::Chunk(chunk) => Some(key::chunk(chunk.owner, chunk.sequence, chunk.index)),
            Self::Partial(partial) => Some(key::partial(partial.owner, partial.sequence)),
            Self::Raw | Self::Queued(..) | Self::Received(_) => None,
        }
    }

    /// Returns the outgoing chunk in this block.
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

    /// Returns the time of the last transmission of the chunk in this block.
    pub(super) fn sent_at(&self) -> Instant {
        let Self::InFlight(_, sent_at) = self else {
            debug_assert!(false, "not a chunk in flight: {self:?}");
            return Instant::ZERO;
        };
        *sent_at
    }

    /// Returns the record of a message of several chunks that is being received.
    pub(super) fn partial(&self) -> &Partial {
        let Self::Partial(partial) = self else {
            debug_assert!(false, "not the record of a message that arrives in several chunks: {self:?}");
            return Partial::NONE;
        };
        partial
    }

    /// Returns the reliability of a received message.
    pub(crate) fn delivery(&self) -> Reliability {
        let Self::Received(reliability) = self else {
            debug_assert!(false, "not a message that arrived: {self:?}");
            return Reliability::default();
        };
        *reliability
    }
}

impl Partial {
    /// A placeholder returned for a block that is not a record, which would be a bug.
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

/// Returns the block with `key` in the index.
pub(super) fn find(cx: &mut Context<'_, '_>, key: u64) -> BlockLink {
    cx.index.find(cx.pool, key, |header| header.key() == Some(key))
}

/// The keys of the index. A key identifies a block by its use, connection, sequence and chunk.
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

/// Every block has a header, so a larger header would take memory in each block.
const _: () = assert!(size_of::<BlockHeader>() <= if cfg!(target_pointer_width = "64") { 32 } else { 24 });

/// The parts of a peer that a connection borrows for one call.
pub(crate) type Context<'x, 'a> = endpoint::Context<'x, 'a, GameProtocol>;

/// The last event of a connection.
pub(super) type Ending = endpoint::Ending<GameProtocol>;

/// The number of sequences in the send window and in the receive window, as in the original implementation
/// (docs/game-protocol.md#window).
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
