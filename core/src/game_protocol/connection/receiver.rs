//! What one connection receives: chunks that become messages.

use super::Context;
use super::block_header::{BlockHeader, Part, find};
use super::sequences::{Deliveries, Known};
use crate::game_protocol::stats::DropReason;
use crate::game_protocol::wire::{CHUNK, MAX_CHUNKS, Position, Reliability};
use crate::storage::{Block, Link, List, Purpose, Queue};
use crate::time::Instant;

/// A chunk that arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chunk<'d> {
    pub(super) reliability: Reliability,
    pub(super) position: Position,
    pub(super) number: u8,
    pub(super) sequence: u16,
    pub(super) body: &'d [u8],
}

impl Chunk<'_> {
    /// Whether its length and number can be right (supplement 2, receiving).
    const fn is_well_formed(&self) -> bool {
        match self.position {
            Position::Inner => self.body.len() == CHUNK && self.number as usize + 1 < MAX_CHUNKS,
            Position::Last => self.body.len() <= CHUNK,
        }
    }

    fn fits(&self, record: &BlockHeader) -> bool {
        match (record.last, self.position) {
            (Some(last), Position::Last) => self.number == last,
            (Some(last), Position::Inner) => self.number < last,
            (None, Position::Last) => self.number > record.chunk,
            (None, Position::Inner) => true,
        }
    }
}

/// Why a chunk was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    Dropped(DropReason),
    /// Its message can never fit.
    TooLarge,
}

impl From<DropReason> for Refusal {
    fn from(reason: DropReason) -> Self {
        Self::Dropped(reason)
    }
}

/// The receiving half of a connection.
#[derive(Debug, Default)]
pub(super) struct Receiver {
    window: Deliveries,
    /// Messages that lack chunks, in the order of their last news.
    reliable: List,
    unreliable: List,
    /// Messages for the application.
    inbox: Queue,
    /// Blocks of all these.
    held: usize,
    /// Blocks that the pool has promised for chunks that are missing.
    promised: usize,
    /// The one reliable message for whose missing chunks the pool has promised nothing. While there is one, no other
    /// reliable message of several chunks is begun: two that do not fit together would wait for each other for ever.
    unbacked: Link,
    pub(super) messages: u64,
    pub(super) chunks: u64,
    pub(super) partial: u32,
}

impl Receiver {
    /// Takes a chunk.
    pub(super) fn take(&mut self, cx: &mut Context<'_, '_>, chunk: Chunk<'_>) -> Result<(), Refusal> {
        if !chunk.is_well_formed() {
            return Err(DropReason::BadChunk.into());
        }
        let record = self.record(cx, chunk.sequence);
        match (self.window.check(chunk.sequence), record) {
            (Known::Delivered, _) => return Err(DropReason::Duplicate.into()),
            (Known::Old, record) => {
                if let Some(record) = record {
                    self.discard(cx, record, DropReason::Overtaken);
                }
                return Err(DropReason::OutsideWindow.into());
            }
            (Known::New, None) if chunk.number == 0 && chunk.position == Position::Last => {
                self.take_whole(cx, chunk)?;
            }
            (Known::New, None) => self.begin(cx, chunk)?,
            (Known::New, Some(record)) => self.add(cx, record, chunk)?,
        }
        self.chunks += 1;
        self.advance(cx, chunk.sequence);
        Ok(())
    }

    fn record(&self, cx: &mut Context<'_, '_>, sequence: u16) -> Link {
        let is_empty = self.reliable.is_empty() && self.unreliable.is_empty();
        let name = BlockHeader { part: Part::Arrival, slot: cx.slot, sequence, ..BlockHeader::default() };
        if is_empty { None } else { find(cx, &name) }
    }

    /// A message of one chunk.
    fn take_whole(&mut self, cx: &mut Context<'_, '_>, chunk: Chunk<'_>) -> Result<(), Refusal> {
        let blocks = cx.pool.blocks_for(chunk.body.len());
        if !self.make_room(cx, blocks, None) {
            return Err(DropReason::NoMemory.into());
        }
        let header =
            BlockHeader { reliability: chunk.reliability, part: Part::Arrived, ..BlockHeader::default() };
        let message = cx.pool.store(chunk.body, Purpose::Receive, &header).ok_or(DropReason::NoMemory)?;
        self.held += blocks;
        self.window.advance(chunk.sequence);
        self.window.mark(chunk.sequence);
        self.inbox.push(cx.pool, message);
        Ok(())
    }

    /// The first chunk that arrives of a message of several.
    fn begin(&mut self, cx: &mut Context<'_, '_>, chunk: Chunk<'_>) -> Result<(), Refusal> {
        let is_reliable = chunk.reliability.is_reliable();
        let blocks = 1 + cx.pool.blocks_for(chunk.body.len());
        if is_reliable && self.unbacked.is_some() || !self.make_room(cx, blocks, None) {
            return Err(DropReason::NoMemory.into());
        }
        let header = BlockHeader {
            part: Part::Arrival,
            slot: cx.slot,
            sequence: chunk.sequence,
            reliability: chunk.reliability,
            at: cx.now,
            ..BlockHeader::default()
        };
        let record = cx.pool.store(&[], Purpose::Receive, &header).ok_or(DropReason::NoMemory)?;
        cx.index.insert(cx.pool, header.key(), record);
        self.list(chunk.reliability).push(cx.pool, record);
        self.held += 1;
        self.partial += 1;
        if is_reliable {
            self.unbacked = Some(record);
        }
        let added = self.add(cx, record, chunk);
        if added.is_err() {
            self.remove(cx, record);
        }
        added
    }

    fn add(&mut self, cx: &mut Context<'_, '_>, record: Block, chunk: Chunk<'_>) -> Result<(), Refusal> {
        let header = *cx.pool.header(record);
        let name = BlockHeader { part: Part::Arrived, chunk: chunk.number, ..header };
        if !(chunk.fits(&header) || header.count == 0) {
            return Err(DropReason::BadChunk.into());
        }
        if find(cx, &name).is_some() {
            return Err(DropReason::Duplicate.into());
        }
        let block = self.store(cx, record, chunk).ok_or(DropReason::NoMemory)?;
        cx.index.insert(cx.pool, name.key(), block);
        cx.pool.put_before(block, header.chunks);
        let last = if chunk.position == Position::Last { Some(chunk.number) } else { header.last };
        let count = header.count + 1;
        let highest = header.chunk.max(chunk.number);
        *cx.pool.header_mut(record) = BlockHeader {
            chunks: Some(block),
            at: cx.now,
            chunk: highest,
            promised: cx.pool.header(record).promised,
            last,
            count,
            ..header
        };
        self.renew(cx, record, chunk.reliability);
        if last.is_some_and(|last| usize::from(count) == usize::from(last) + 1) {
            self.complete(cx, record);
            return Ok(());
        }
        self.back(cx, record)
    }

    /// Stores a chunk in the room that was promised to its message, or else in what is left.
    fn store(&mut self, cx: &mut Context<'_, '_>, record: Block, chunk: Chunk<'_>) -> Link {
        let BlockHeader { promised, slot, sequence, reliability, .. } = *cx.pool.header(record);
        let header = BlockHeader {
            part: Part::Arrived,
            chunk: chunk.number,
            slot,
            sequence,
            reliability,
            ..BlockHeader::default()
        };
        let blocks = cx.pool.blocks_for(chunk.body.len());
        let purpose = if promised > 0 { Purpose::Promised } else { Purpose::Receive };
        if promised == 0 && !self.make_room(cx, blocks, Some(record)) {
            return None;
        }
        let block = cx.pool.store(chunk.body, purpose, &header)?;
        self.held += blocks;
        self.release(cx, record, u16::try_from(cx.pool.blocks_for(CHUNK)).unwrap_or(u16::MAX));
        Some(block)
    }

    /// A message had news. One chunk that is reliable makes it so.
    fn renew(&mut self, cx: &mut Context<'_, '_>, record: Block, reliability: Reliability) {
        let before = cx.pool.header(record).reliability;
        self.list(before).remove(cx.pool, record);
        let now = if before.is_reliable() { before } else { reliability };
        cx.pool.header_mut(record).reliability = now;
        self.list(now).push(cx.pool, record);
    }

    /// Has the pool promise room for the chunks of a reliable message that are missing, as far as their number is known.
    fn back(&mut self, cx: &mut Context<'_, '_>, record: Block) -> Result<(), Refusal> {
        let BlockHeader { reliability, last, count, promised, .. } = *cx.pool.header(record);
        if !reliability.is_reliable() {
            return Ok(());
        }
        let chunks = last.map_or(MAX_CHUNKS, |last| usize::from(last) + 1);
        let per_chunk = cx.pool.blocks_for(CHUNK);
        if last.is_some() && 1 + chunks * per_chunk > cx.receive_quota {
            return Err(Refusal::TooLarge);
        }
        let missing = (chunks - usize::from(count)) * per_chunk;
        if promised > 0 {
            let excess = usize::from(promised).saturating_sub(missing);
            self.release(cx, record, u16::try_from(excess).unwrap_or(u16::MAX));
        } else if self.held + self.promised + missing <= cx.receive_quota && cx.pool.promise(missing) {
            self.promised += missing;
            cx.pool.header_mut(record).promised = u16::try_from(missing).unwrap_or(u16::MAX);
            self.unbacked = self.unbacked.filter(|unbacked| *unbacked != record);
        } else if self.unbacked.is_none() {
            self.unbacked = Some(record);
        }
        Ok(())
    }

    fn release(&mut self, cx: &mut Context<'_, '_>, record: Block, most: u16) {
        let header = cx.pool.header_mut(record);
        let released = header.promised.min(most);
        header.promised -= released;
        cx.pool.release_promise(released.into());
        self.promised = self.promised.saturating_sub(released.into());
    }

    /// All chunks are there.
    fn complete(&mut self, cx: &mut Context<'_, '_>, record: Block) {
        let header = *cx.pool.header(record);
        let mut name = BlockHeader { part: Part::Arrived, chunk: 0, ..header };
        let mut message: Link = None;
        let last = header.last.unwrap_or(0);
        for number in 0..=last {
            name.chunk = number;
            let Some(chunk) = find(cx, &name) else { continue };
            cx.index.remove(cx.pool, name.key(), chunk);
            match message {
                None => message = Some(chunk),
                Some(message) => cx.pool.join(message, chunk),
            }
        }
        cx.pool.header_mut(record).chunks = None;
        self.remove(cx, record);
        self.window.advance(header.sequence);
        self.window.mark(header.sequence);
        if let Some(message) = message {
            cx.pool.header_mut(message).reliability = header.reliability;
            self.inbox.push(cx.pool, message);
        }
    }

    /// Moves the window on, and drops the messages that fall out of it, as the original does.
    fn advance(&mut self, cx: &mut Context<'_, '_>, sequence: u16) {
        self.window.advance(sequence);
        for reliability in [Reliability::Unreliable, Reliability::Reliable] {
            while let Some(oldest) = self.list(reliability).oldest() {
                if !self.window.has_passed(cx.pool.header(oldest).sequence) {
                    break;
                }
                self.discard(cx, oldest, DropReason::Overtaken);
            }
        }
    }

    /// Whether `blocks` blocks are free for this connection, if need be instead of unreliable messages that lack chunks;
    /// but not of `spared`.
    fn make_room(&mut self, cx: &mut Context<'_, '_>, blocks: usize, spared: Link) -> bool {
        loop {
            let fits = self.held + self.promised + blocks <= cx.receive_quota
                && cx.pool.room(Purpose::Receive) >= blocks;
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

    /// Gives up a message that lacks chunks.
    fn discard(&mut self, cx: &mut Context<'_, '_>, record: Block, reason: DropReason) {
        cx.stats.drop(reason);
        self.remove(cx, record);
    }

    /// Takes a record out of everything, with the chunks that it still has.
    fn remove(&mut self, cx: &mut Context<'_, '_>, record: Block) {
        let header = *cx.pool.header(record);
        let mut at = header.chunks;
        while let Some(chunk) = at {
            at = cx.pool.after(chunk);
            cx.index.remove(cx.pool, cx.pool.header(chunk).key(), chunk);
            self.held = self.held.saturating_sub(cx.pool.free(chunk));
        }
        self.release(cx, record, u16::MAX);
        cx.index.remove(cx.pool, header.key(), record);
        self.list(header.reliability).remove(cx.pool, record);
        self.unbacked = self.unbacked.filter(|unbacked| *unbacked != record);
        self.held = self.held.saturating_sub(cx.pool.free(record));
        self.partial = self.partial.saturating_sub(1);
    }

    /// Drops unreliable messages that lacked chunks for too long; false if a reliable one did.
    pub(super) fn expire(&mut self, cx: &mut Context<'_, '_>) -> bool {
        while let Some(oldest) = self.unreliable.oldest() {
            if cx.pool.header(oldest).at + cx.config.unreliable_timeout > cx.now {
                break;
            }
            self.discard(cx, oldest, DropReason::Expired);
        }
        let oldest = self.reliable.oldest();
        oldest.is_none_or(|oldest| cx.pool.header(oldest).at + cx.config.timeout > cx.now)
    }

    /// When [`expire`](Self::expire) has something to do.
    pub(super) fn deadline(&self, cx: &Context<'_, '_>) -> Option<Instant> {
        let at = |list: &List, patience| list.oldest().map(|oldest| cx.pool.header(oldest).at + patience);
        let unreliable = at(&self.unreliable, cx.config.unreliable_timeout);
        let reliable = at(&self.reliable, cx.config.timeout);
        [unreliable, reliable].into_iter().flatten().min()
    }

    pub(super) const fn has_messages(&self) -> bool {
        !self.inbox.is_empty()
    }

    /// The next message for the application, which stays counted until it was read.
    pub(super) fn pop(&mut self, cx: &mut Context<'_, '_>) -> Link {
        let message = self.inbox.pop(cx.pool)?;
        self.messages += 1;
        Some(message)
    }

    /// The application has read a message of so many blocks.
    pub(super) const fn on_read(&mut self, blocks: usize) {
        self.held = self.held.saturating_sub(blocks);
    }

    /// Gives up everything that lacks chunks.
    pub(super) fn clear(&mut self, cx: &mut Context<'_, '_>) {
        for reliability in [Reliability::Unreliable, Reliability::Reliable] {
            while let Some(record) = self.list(reliability).oldest() {
                self.remove(cx, record);
            }
        }
    }

    /// Gives up what the application has not read.
    pub(super) fn clear_inbox(&mut self, cx: &mut Context<'_, '_>) {
        self.inbox.free_all(cx.pool);
    }
}
