//! The receiving side of a connection, which reassembles messages from chunks.

use super::block_header::{Bits, BlockHeader, Context, Partial, ReceivedChunk, WINDOW, find, key};
use crate::game_protocol::config::{ConnectionStats, DropReason};
use crate::game_protocol::wire::{CHUNK, MAX_CHUNKS, Position, Reliability};
use crate::storage::{Block, BlockLink, List, Purpose, Queue, Share};
use crate::time::Instant;

/// A received chunk.
#[derive(Clone, Copy, Debug)]
pub(super) struct ArrivedChunk<'d> {
    pub(super) reliability: Reliability,
    pub(super) position: Position,
    pub(super) index: u8,
    pub(super) sequence: u16,
    pub(super) body: &'d [u8],
}

impl ArrivedChunk<'_> {
    /// Returns true if the length and index are valid (docs/game-protocol.md#chunks).
    const fn is_well_formed(&self) -> bool {
        match self.position {
            Position::Inner => self.body.len() == CHUNK && self.index as usize + 1 < MAX_CHUNKS,
            Position::Last => self.body.len() <= CHUNK,
        }
    }

    /// Returns true if the chunk is consistent with the other chunks of the message.
    const fn agrees(&self, partial: &Partial) -> bool {
        match (partial.last, self.position) {
            _ if partial.received == 0 => true,
            (Some(last), Position::Last) => self.index == last,
            (Some(last), Position::Inner) => self.index < last,
            (None, Position::Last) => self.index > partial.highest,
            (None, Position::Inner) => true,
        }
    }
}

/// The reason why a chunk was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReceiveError {
    Dropped(DropReason),
    /// The message can never fit into the memory of one connection.
    MessageTooLarge,
}

impl From<DropReason> for ReceiveError {
    fn from(reason: DropReason) -> Self {
        Self::Dropped(reason)
    }
}

/// The receiving side of a connection.
#[derive(Debug, Default)]
pub(super) struct Receiver {
    window: ReceiveWindow,
    /// Records of incomplete reliable messages, ordered by the time of their last chunk.
    reliable: List,
    /// Records of incomplete unreliable messages, ordered by the time of their last chunk.
    unreliable: List,
    /// Messages for the application.
    receive_queue: Queue,
    /// The share of blocks held by these messages and records, and reserved for missing chunks.
    share: Share,
    /// The only reliable message, if any, that has no blocks reserved for its missing chunks.
    ///
    /// While it exists, no other reliable message of several chunks is started: two messages that do not fit together
    /// would wait for each other forever.
    without_promise: BlockLink,
    messages_received: u64,
    chunks_received: u64,
    partial_messages: u32,
}

impl Receiver {
    /// Handles a chunk.
    pub(super) fn on_chunk(
        &mut self,
        cx: &mut Context<'_, '_>,
        chunk: ArrivedChunk<'_>,
    ) -> Result<(), ReceiveError> {
        if !chunk.is_well_formed() {
            return Err(DropReason::BadChunk.into());
        }
        let record = self.find_partial(cx, chunk.sequence);
        match (self.window.check(chunk.sequence), record) {
            (SequenceStatus::Duplicate, _) => return Err(DropReason::Duplicate.into()),
            (SequenceStatus::OutsideWindow, record) => {
                if let Some(record) = record {
                    self.discard(cx, record, DropReason::Incomplete);
                }
                return Err(DropReason::OutsideWindow.into());
            }
            (SequenceStatus::New, None) if chunk.index == 0 && chunk.position == Position::Last => {
                self.take_whole(cx, chunk)?;
            }
            (SequenceStatus::New, None) => self.begin(cx, chunk)?,
            (SequenceStatus::New, Some(record)) => self.add(cx, record, chunk)?,
        }
        self.chunks_received += 1;
        self.advance(cx, chunk.sequence);
        Ok(())
    }

    fn find_partial(&self, cx: &mut Context<'_, '_>, sequence: u16) -> BlockLink {
        let is_empty = self.reliable.is_empty() && self.unreliable.is_empty();
        if is_empty { None } else { find(cx, key::partial(cx.slot, sequence)) }
    }

    /// Accepts a message of a single chunk.
    fn take_whole(&mut self, cx: &mut Context<'_, '_>, chunk: ArrivedChunk<'_>) -> Result<(), ReceiveError> {
        let blocks = cx.pool.blocks_for(chunk.body.len());
        if !self.make_room(cx, blocks, None) {
            return Err(DropReason::NoMemory.into());
        }
        let header = BlockHeader::Received(chunk.reliability);
        let Some(message) = cx.pool.store(chunk.body, &header) else {
            cx.pool.shares.release(&mut self.share, blocks);
            return Err(DropReason::NoMemory.into());
        };
        self.window.advance(chunk.sequence);
        self.window.mark(chunk.sequence);
        self.receive_queue.push(cx.pool, message);
        Ok(())
    }

    /// Creates the record of a message of several chunks, with its first received chunk.
    fn begin(&mut self, cx: &mut Context<'_, '_>, chunk: ArrivedChunk<'_>) -> Result<(), ReceiveError> {
        let is_reliable = chunk.reliability.is_reliable();
        let blocks = cx.pool.blocks_for(chunk.body.len());
        if is_reliable && self.without_promise.is_some() || !self.make_room(cx, 1 + blocks, None) {
            return Err(DropReason::NoMemory.into());
        }
        // Only checks that the chunk itself fits as well: its blocks are charged when it is stored.
        cx.pool.shares.release(&mut self.share, blocks);
        let (owner, sequence) = (cx.slot, chunk.sequence);
        let header = BlockHeader::Partial(Partial {
            updated_at: cx.now,
            chunks: None,
            promised: 0,
            received: 0,
            owner,
            sequence,
            highest: 0,
            last: None,
            reliability: chunk.reliability,
        });
        let Some(record) = cx.pool.store(&[], &header) else {
            cx.pool.shares.release(&mut self.share, 1);
            return Err(DropReason::NoMemory.into());
        };
        cx.index.insert(cx.pool, key::partial(owner, sequence), record);
        self.list(chunk.reliability).push(cx.pool, record);
        self.partial_messages += 1;
        if is_reliable {
            self.without_promise = Some(record);
        }
        let added = self.add(cx, record, chunk);
        if added.is_err() {
            self.remove(cx, record);
        }
        added
    }

    fn add(
        &mut self,
        cx: &mut Context<'_, '_>,
        record: Block,
        chunk: ArrivedChunk<'_>,
    ) -> Result<(), ReceiveError> {
        let chunks = {
            let partial = cx.pool.header(record).partial();
            if !chunk.agrees(partial) {
                return Err(DropReason::BadChunk.into());
            }
            partial.chunks
        };
        let key = key::chunk(cx.slot, chunk.sequence, chunk.index);
        if find(cx, key).is_some() {
            return Err(DropReason::Duplicate.into());
        }
        let block = self.store(cx, record, chunk).ok_or(DropReason::NoMemory)?;
        cx.index.insert(cx.pool, key, block);
        cx.pool.put_before(block, chunks);
        let now = cx.now;
        let Some(partial) = partial_mut(cx, record) else { return Ok(()) };
        partial.chunks = Some(block);
        partial.updated_at = now;
        partial.highest = partial.highest.max(chunk.index);
        partial.received += 1;
        if chunk.position == Position::Last {
            partial.last = Some(chunk.index);
        }
        let is_whole = partial.last.is_some_and(|last| partial.received == u16::from(last) + 1);
        self.move_to_newest(cx, record, chunk.reliability);
        if is_whole {
            self.complete(cx, record);
            return Ok(());
        }
        self.promise_missing(cx, record)
    }

    /// Stores a chunk in the blocks reserved for its message, or else in free ones.
    fn store(&mut self, cx: &mut Context<'_, '_>, record: Block, chunk: ArrivedChunk<'_>) -> BlockLink {
        let (owner, sequence, index) = (cx.slot, chunk.sequence, chunk.index);
        let header = BlockHeader::Chunk(ReceivedChunk { owner, sequence, index });
        let blocks = cx.pool.blocks_for(chunk.body.len());
        let is_promised = cx.pool.header(record).partial().promised > 0;
        if !is_promised && !self.make_room(cx, blocks, Some(record)) {
            return None;
        }
        let Some(block) = cx.pool.store(chunk.body, &header) else {
            let charged = if is_promised { 0 } else { blocks };
            cx.pool.shares.release(&mut self.share, charged);
            return None;
        };
        let per_chunk = u16::try_from(cx.pool.blocks_for(CHUNK)).unwrap_or(u16::MAX);
        let promised = usize::from(take_promise(cx, record, per_chunk));
        cx.pool.shares.release(&mut self.share, promised.saturating_sub(blocks));
        Some(block)
    }

    /// Moves a record to the end of its list. If any chunk of a message is reliable, the whole message is.
    fn move_to_newest(&mut self, cx: &mut Context<'_, '_>, record: Block, reliability: Reliability) {
        let Some(partial) = partial_mut(cx, record) else { return };
        let before = partial.reliability;
        let after = if before.is_reliable() { before } else { reliability };
        partial.reliability = after;
        self.list(before).remove(cx.pool, record);
        self.list(after).push(cx.pool, record);
    }

    /// Reserves blocks for the missing chunks of a reliable message, as far as their number is known.
    fn promise_missing(&mut self, cx: &mut Context<'_, '_>, record: Block) -> Result<(), ReceiveError> {
        let Partial { reliability, last, received, promised, .. } = *cx.pool.header(record).partial();
        if !reliability.is_reliable() {
            return Ok(());
        }
        let chunks = last.map_or(MAX_CHUNKS, |last| usize::from(last) + 1);
        let per_chunk = cx.pool.blocks_for(CHUNK);
        if last.is_some() && 1 + chunks * per_chunk > cx.pool.shares.most(&self.share, Purpose::Receive) {
            return Err(ReceiveError::MessageTooLarge);
        }
        let missing = (chunks - usize::from(received)) * per_chunk;
        if promised > 0 {
            let excess = usize::from(promised).saturating_sub(missing);
            self.release_promise(cx, record, u16::try_from(excess).unwrap_or(u16::MAX));
        } else if cx.pool.shares.charge(&mut self.share, missing, Purpose::Receive).is_ok() {
            if let Some(partial) = partial_mut(cx, record) {
                partial.promised = u16::try_from(missing).unwrap_or(u16::MAX);
            }
            self.without_promise = self.without_promise.filter(|waiting| *waiting != record);
        } else if self.without_promise.is_none() {
            self.without_promise = Some(record);
        }
        Ok(())
    }

    /// Releases up to `blocks` of the blocks reserved for a message.
    fn release_promise(&mut self, cx: &mut Context<'_, '_>, record: Block, blocks: u16) {
        let released = take_promise(cx, record, blocks);
        cx.pool.shares.release(&mut self.share, released.into());
    }

    /// Frees the blocks of a message, chunk or record, and releases them from the share.
    fn free(&mut self, cx: &mut Context<'_, '_>, message: Block) {
        let freed = cx.pool.free(message);
        cx.pool.shares.release(&mut self.share, freed);
    }

    /// Reassembles a complete message and removes its record.
    fn complete(&mut self, cx: &mut Context<'_, '_>, record: Block) {
        let Partial { sequence, last, reliability, .. } = *cx.pool.header(record).partial();
        let mut message: BlockLink = None;
        for index in 0..=last.unwrap_or(0) {
            let Some(chunk) = take_chunk(cx, sequence, index) else { continue };
            match message {
                None => message = Some(chunk),
                Some(message) => cx.pool.join(message, chunk),
            }
        }
        if let Some(partial) = partial_mut(cx, record) {
            partial.chunks = None;
        }
        self.remove(cx, record);
        self.window.advance(sequence);
        self.window.mark(sequence);
        if let Some(message) = message {
            *cx.pool.header_mut(message) = BlockHeader::Received(reliability);
            self.receive_queue.push(cx.pool, message);
        }
    }

    /// Advances the window and drops incomplete messages that leave it, as in the original implementation.
    fn advance(&mut self, cx: &mut Context<'_, '_>, sequence: u16) {
        self.window.advance(sequence);
        for reliability in [Reliability::Unreliable, Reliability::Reliable] {
            while let Some(oldest) = self.list(reliability).oldest() {
                if !self.window.has_passed(cx.pool.header(oldest).partial().sequence) {
                    break;
                }
                self.discard(cx, oldest, DropReason::Incomplete);
            }
        }
    }

    /// Charges `blocks` blocks, if necessary by dropping incomplete unreliable messages other than `spared`.
    ///
    /// Returns false if the connection may not hold that many.
    fn make_room(&mut self, cx: &mut Context<'_, '_>, blocks: usize, spared: BlockLink) -> bool {
        loop {
            let fits = cx.pool.shares.charge(&mut self.share, blocks, Purpose::Receive).is_ok();
            match self.unreliable.oldest() {
                _ if fits => return true,
                Some(oldest) if Some(oldest) != spared => self.discard(cx, oldest, DropReason::NoMemory),
                Some(_) | None => return false,
            }
        }
    }

    const fn list(&mut self, reliability: Reliability) -> &mut List {
        match reliability {
            Reliability::Reliable => &mut self.reliable,
            Reliability::Unreliable => &mut self.unreliable,
        }
    }

    /// Drops an incomplete message.
    fn discard(&mut self, cx: &mut Context<'_, '_>, record: Block, reason: DropReason) {
        cx.stats.drop(reason);
        self.remove(cx, record);
    }

    /// Frees a record and its chunks.
    fn remove(&mut self, cx: &mut Context<'_, '_>, record: Block) {
        let Partial { sequence, chunks, reliability, .. } = *cx.pool.header(record).partial();
        let mut at = chunks;
        while let Some(chunk) = at {
            at = cx.pool.after(chunk);
            if let Some(key) = cx.pool.header(chunk).key() {
                cx.index.remove(cx.pool, key, chunk);
            }
            self.free(cx, chunk);
        }
        self.release_promise(cx, record, u16::MAX);
        cx.index.remove(cx.pool, key::partial(cx.slot, sequence), record);
        self.list(reliability).remove(cx.pool, record);
        self.without_promise = self.without_promise.filter(|waiting| *waiting != record);
        self.free(cx, record);
        self.partial_messages = self.partial_messages.saturating_sub(1);
    }

    /// Drops unreliable messages with overdue missing chunks; returns false if a reliable message has timed out.
    pub(super) fn expire(&mut self, cx: &mut Context<'_, '_>) -> bool {
        while let Some(oldest) = self.unreliable.oldest() {
            if cx.pool.header(oldest).partial().updated_at + cx.config.unreliable_timeout > cx.now {
                break;
            }
            self.discard(cx, oldest, DropReason::Expired);
        }
        let oldest = self.reliable.oldest();
        oldest.is_none_or(|oldest| cx.pool.header(oldest).partial().updated_at + cx.config.timeout > cx.now)
    }

    /// Returns when [`expire`](Self::expire) is due.
    pub(super) fn deadline(&self, cx: &Context<'_, '_>) -> Option<Instant> {
        let at = |list: &List, timeout| {
            list.oldest().map(|oldest| cx.pool.header(oldest).partial().updated_at + timeout)
        };
        let unreliable = at(&self.unreliable, cx.config.unreliable_timeout);
        let reliable = at(&self.reliable, cx.config.timeout);
        [unreliable, reliable].into_iter().flatten().min()
    }

    pub(super) const fn has_messages(&self) -> bool {
        !self.receive_queue.is_empty()
    }

    pub(super) const fn fill_stats(&self, stats: &mut ConnectionStats) {
        stats.messages_received = self.messages_received;
        stats.chunks_received = self.chunks_received;
        stats.partial = self.partial_messages;
    }

    /// Takes the next message for the application. It stays charged until it has been read.
    pub(super) fn take_message(&mut self, cx: &mut Context<'_, '_>) -> BlockLink {
        let message = self.receive_queue.pop(cx.pool)?;
        self.messages_received += 1;
        Some(message)
    }

    /// Called when the application has read a message of `blocks` blocks.
    pub(super) fn on_read(&mut self, cx: &mut Context<'_, '_>, blocks: usize) {
        cx.pool.shares.release(&mut self.share, blocks);
    }

    /// Frees incomplete messages.
    pub(super) fn clear_partial(&mut self, cx: &mut Context<'_, '_>) {
        for reliability in [Reliability::Unreliable, Reliability::Reliable] {
            while let Some(record) = self.list(reliability).oldest() {
                self.remove(cx, record);
            }
        }
    }

    /// Frees everything, including messages that the application has not read.
    pub(super) fn clear(&mut self, cx: &mut Context<'_, '_>) {
        self.clear_partial(cx);
        self.receive_queue.free_all(cx.pool);
        cx.pool.shares.close(&mut self.share);
    }
}

fn partial_mut<'c>(cx: &'c mut Context<'_, '_>, record: Block) -> Option<&'c mut Partial> {
    let header = cx.pool.header_mut(record);
    let BlockHeader::Partial(partial) = header else {
        debug_assert!(false, "not the record of a message that arrives in several chunks: {header:?}");
        return None;
    };
    Some(partial)
}

/// Takes up to `blocks` blocks from the reservation of a message; returns the number taken.
fn take_promise(cx: &mut Context<'_, '_>, record: Block, blocks: u16) -> u16 {
    let Some(partial) = partial_mut(cx, record) else { return 0 };
    let taken = partial.promised.min(blocks);
    partial.promised -= taken;
    taken
}

fn take_chunk(cx: &mut Context<'_, '_>, sequence: u16, index: u8) -> BlockLink {
    let key = key::chunk(cx.slot, sequence, index);
    let chunk = find(cx, key)?;
    cx.index.remove(cx.pool, key, chunk);
    Some(chunk)
}

/// The distance from which a sequence counts as older.
const HALF: u16 = 0x8000;

/// The classification of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SequenceStatus {
    New,
    /// The message with this sequence was delivered.
    Duplicate,
    /// The sequence is older than the window, so its state is unknown.
    OutsideWindow,
}

/// The window of delivered sequences, up to the newest.
#[derive(Clone, Copy, Debug, Default)]
struct ReceiveWindow {
    /// The newest sequence received so far.
    newest: Option<u16>,
    delivered: Bits,
}

impl ReceiveWindow {
    fn check(&self, sequence: u16) -> SequenceStatus {
        match self.behind(sequence) {
            None => SequenceStatus::New,
            Some(behind) if behind >= WINDOW => SequenceStatus::OutsideWindow,
            Some(_) if self.delivered.get(sequence) => SequenceStatus::Duplicate,
            Some(_) => SequenceStatus::New,
        }
    }

    /// Returns the distance of a sequence behind the newest one; `None` if it is newer.
    fn behind(&self, sequence: u16) -> Option<u16> {
        let newest = self.newest?;
        let behind = newest.wrapping_sub(sequence);
        // A sequence exactly half of the number space away counts as behind.
        (behind <= HALF).then_some(behind)
    }

    /// Returns true if the window has passed a sequence.
    fn has_passed(&self, sequence: u16) -> bool {
        self.check(sequence) == SequenceStatus::OutsideWindow
    }

    /// Advances the window so that it includes `sequence`.
    fn advance(&mut self, sequence: u16) {
        if self.behind(sequence).is_some() {
            return;
        }
        if let Some(newest) = self.newest {
            let ahead = sequence.wrapping_sub(newest);
            if ahead >= WINDOW {
                self.delivered = Bits::default();
            }
            for step in 1..=ahead.min(WINDOW) {
                self.delivered.clear(newest.wrapping_add(step));
            }
        }
        self.newest = Some(sequence);
    }

    fn mark(&mut self, sequence: u16) {
        self.delivered.set(sequence);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sequence_is_new_once_from_any_first_sequence() {
        for start in [0, 1, 1_023, 32_767, 32_768, 65_000, 65_535] {
            let mut window = ReceiveWindow::default();
            for step in (0..4_000_u16).map(|step| step ^ 3) {
                let sequence = step.wrapping_add(start);
                assert_eq!(window.check(sequence), SequenceStatus::New, "{start} {step}");
                window.advance(sequence);
                window.mark(sequence);
                assert_eq!(window.check(sequence), SequenceStatus::Duplicate);
            }
        }
    }

    #[test]
    fn the_window_reaches_back_1_023_sequences() {
        let mut window = ReceiveWindow::default();
        window.advance(65_000);
        window.mark(65_000);
        window.advance(65_000_u16.wrapping_add(1_023));
        assert_eq!(window.check(65_000), SequenceStatus::Duplicate);
        assert_eq!(window.check(64_999), SequenceStatus::OutsideWindow);
        window.advance(65_000_u16.wrapping_add(1_024));
        assert_eq!(window.check(65_000), SequenceStatus::OutsideWindow);
        assert_eq!(window.check(65_001), SequenceStatus::New);
    }

    #[test]
    fn a_jump_of_sequences_clears_the_window() {
        let mut window = ReceiveWindow::default();
        for sequence in 0..1_024 {
            window.advance(sequence);
            window.mark(sequence);
        }
        window.advance(20_000);
        assert_eq!(window.check(20_000), SequenceStatus::New);
        assert_eq!(window.check(20_000 - 1_023), SequenceStatus::New);
        assert_eq!(window.check(20_000 - 1_024), SequenceStatus::OutsideWindow);
        assert_eq!(window.check(20_000_u16.wrapping_add(HALF - 1)), SequenceStatus::New);
        assert_eq!(window.check(20_000_u16.wrapping_add(HALF)), SequenceStatus::OutsideWindow);
    }
}
