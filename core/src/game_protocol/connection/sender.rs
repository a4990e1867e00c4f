//! What one connection sends: messages cut into chunks, and the chunks that are not acknowledged.

use super::Context;
use super::block_header::{BlockHeader, Part, find};
use super::round_trip::RoundTrip;
use super::sequences::Departures;
use crate::cursor::{WireError, Writer};
use crate::endpoint::SendError;
use crate::game_protocol::stats::DropReason;
use crate::game_protocol::wire::{CHUNK, Header, MAX_PAYLOAD, Position, Reliability, chunks_of};
use crate::storage::{Block, List, Purpose, Queue};
use crate::time::Instant;

/// The sending half of a connection.
#[derive(Debug, Default)]
pub(super) struct Sender {
    next: u16,
    /// Chunks that wait to be sent for the first time, in the order of their sequences.
    waiting: Queue,
    /// Reliable chunks that are not acknowledged, in the order in which they were sent last.
    flight: List,
    /// Reliable messages of several chunks that are not acknowledged.
    departures: List,
    window: Departures,
    /// Blocks of all these.
    held: usize,
    round_trip: RoundTrip,
    /// When something was acknowledged last.
    heard_at: Instant,
    pub(super) counts: SenderCounts,
}

/// What the sending half counts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SenderCounts {
    pub(super) messages: u64,
    pub(super) sent: u64,
    pub(super) resent: u64,
    pub(super) acknowledged: u64,
    pub(super) in_flight: u32,
    pub(super) waiting: u32,
}

impl Sender {
    /// Lets the sequences begin elsewhere than at 0.
    pub(super) const fn start_at(&mut self, sequence: u16) {
        self.next = sequence;
    }

    pub(super) const fn round_trip(&self) -> &RoundTrip {
        &self.round_trip
    }

    /// Whether nothing waits and everything reliable was acknowledged.
    pub(super) const fn is_done(&self) -> bool {
        self.waiting.is_empty() && self.flight.is_empty()
    }

    /// Cuts a message into chunks and queues them; all or none.
    pub(super) fn push(
        &mut self,
        cx: &mut Context<'_, '_>,
        payload: &[u8],
        reliability: Reliability,
    ) -> Result<(), SendError> {
        let blocks = self.admit(cx, payload.len(), reliability)?;
        let (slot, sequence) = (cx.slot, self.next);
        let chunks = chunks_of(payload.len());
        let last = u8::try_from(chunks - 1).ok();
        let name = BlockHeader { slot, sequence, last, reliability, at: cx.now, ..BlockHeader::default() };
        if chunks > 1 && reliability.is_reliable() {
            let count = u16::try_from(chunks).unwrap_or(u16::MAX);
            let record = BlockHeader { part: Part::Departure, count, ..name };
            let record_block = cx.pool.store(&[], Purpose::Send, &record).ok_or(SendError::PoolExhausted)?;
            cx.index.insert(cx.pool, record.key(), record_block);
            self.departures.push(cx.pool, record_block);
        }
        for (chunk, bytes) in (0..=u8::MAX).zip(payload.chunks(CHUNK)) {
            let block = cx.pool.store(bytes, Purpose::Send, &BlockHeader { chunk, ..name });
            self.waiting.push(cx.pool, block.ok_or(SendError::PoolExhausted)?);
            self.counts.waiting += 1;
        }
        self.held += blocks;
        self.next = self.next.wrapping_add(1);
        self.counts.messages += 1;
        Ok(())
    }

    /// How many blocks a message takes, if there is room for it.
    fn admit(
        &self,
        cx: &Context<'_, '_>,
        length: usize,
        reliability: Reliability,
    ) -> Result<usize, SendError> {
        if length == 0 {
            return Err(SendError::Empty);
        }
        if length > MAX_PAYLOAD {
            return Err(SendError::TooLong);
        }
        let inner = chunks_of(length) - 1;
        let record = usize::from(inner > 0 && reliability.is_reliable());
        let blocks = inner * cx.pool.blocks_for(CHUNK) + cx.pool.blocks_for(length - inner * CHUNK) + record;
        if blocks > cx.send_quota {
            Err(SendError::NeverFits)
        } else if self.held + blocks > cx.send_quota || self.is_a_round_ahead(cx) {
            Err(SendError::QuotaExceeded)
        } else if blocks > cx.pool.room(Purpose::Send) {
            Err(SendError::PoolExhausted)
        } else {
            Ok(blocks)
        }
    }

    /// Whether so many messages wait that their sequences would come round to those that are under way.
    fn is_a_round_ahead(&self, cx: &Context<'_, '_>) -> bool {
        let first = self.waiting.front().map(|chunk| cx.pool.header(chunk).sequence);
        first.is_some_and(|first| self.next.wrapping_sub(first) >= u16::MAX / 2)
    }

    /// Writes the next packet: a chunk that is due again, or a new one.
    pub(super) fn poll(&mut self, cx: &mut Context<'_, '_>, writer: &mut Writer<'_>) -> Option<()> {
        match self.resend_at(cx) {
            Some((at, chunk)) if at <= cx.now => self.resend(cx, chunk, writer),
            Some(_) | None => self.send_next(cx, writer),
        }
    }

    /// When the chunk that was sent longest ago is sent again.
    pub(super) fn resend_at(&self, cx: &Context<'_, '_>) -> Option<(Instant, Block)> {
        let oldest = self.flight.oldest()?;
        let interval = self.round_trip.interval(cx.config.resend);
        Some((cx.pool.header(oldest).at.plus_micros(interval), oldest))
    }

    fn resend(&mut self, cx: &mut Context<'_, '_>, chunk: Block, writer: &mut Writer<'_>) -> Option<()> {
        if self.heard_at <= cx.pool.header(chunk).at && cx.pool.header(chunk).sends > 1 {
            self.round_trip.back_off();
        }
        self.flight.remove(cx.pool, chunk);
        self.flight.push(cx.pool, chunk);
        let header = cx.pool.header_mut(chunk);
        header.at = cx.now;
        header.sends = header.sends.saturating_add(1);
        self.counts.resent += 1;
        write(cx, chunk, writer).ok()
    }

    fn send_next(&mut self, cx: &mut Context<'_, '_>, writer: &mut Writer<'_>) -> Option<()> {
        let chunk = self.next_waiting(cx)?;
        self.waiting.pop(cx.pool);
        self.counts.waiting = self.counts.waiting.saturating_sub(1);
        self.counts.sent += 1;
        let written = write(cx, chunk, writer);
        let header = cx.pool.header_mut(chunk);
        header.at = cx.now;
        header.sends = 1;
        let header = *header;
        if header.reliability.is_reliable() {
            self.window.open(header.sequence);
            cx.index.insert(cx.pool, header.key(), chunk);
            self.flight.push(cx.pool, chunk);
            self.counts.in_flight += 1;
        } else {
            self.held = self.held.saturating_sub(cx.pool.free(chunk));
        }
        written.ok()
    }

    /// The next chunk that may be sent. Unreliable messages that have waited too long are dropped on the way to it.
    fn next_waiting(&mut self, cx: &mut Context<'_, '_>) -> Option<Block> {
        loop {
            let chunk = self.waiting.front()?;
            let header = *cx.pool.header(chunk);
            let is_outdated = header.chunk == 0
                && !header.reliability.is_reliable()
                && header.at + cx.config.unreliable_timeout < cx.now;
            if !is_outdated {
                return self.window.admits(header.sequence).then_some(chunk);
            }
            cx.stats.drop(DropReason::Expired);
            self.drop_waiting(cx, header.sequence);
        }
    }

    /// Drops the chunks of the message that waits at the front.
    fn drop_waiting(&mut self, cx: &mut Context<'_, '_>, sequence: u16) {
        while let Some(chunk) = self.waiting.front().filter(|c| cx.pool.header(*c).sequence == sequence) {
            self.waiting.pop(cx.pool);
            self.counts.waiting = self.counts.waiting.saturating_sub(1);
            self.held = self.held.saturating_sub(cx.pool.free(chunk));
        }
    }

    /// The other peer has a chunk; false if none such is under way.
    pub(super) fn acknowledge(&mut self, cx: &mut Context<'_, '_>, sequence: u16, chunk: u8) -> bool {
        let name = BlockHeader { slot: cx.slot, sequence, chunk, ..BlockHeader::default() };
        let Some(block) = find(cx, &name) else { return false };
        let header = *cx.pool.header(block);
        if header.sends == 1 {
            self.round_trip.sample(cx.now.micros_since(header.at));
        }
        self.round_trip.hear();
        self.heard_at = cx.now;
        cx.index.remove(cx.pool, header.key(), block);
        self.flight.remove(cx.pool, block);
        self.held = self.held.saturating_sub(cx.pool.free(block));
        self.counts.in_flight = self.counts.in_flight.saturating_sub(1);
        self.counts.acknowledged += 1;
        if header.last == Some(0) || self.was_last_open(cx, sequence) {
            self.window.close(sequence);
        }
        true
    }

    /// Counts a chunk of a message of several down; whether it was the last one.
    fn was_last_open(&mut self, cx: &mut Context<'_, '_>, sequence: u16) -> bool {
        let name = BlockHeader { part: Part::Departure, slot: cx.slot, sequence, ..BlockHeader::default() };
        let Some(record) = find(cx, &name) else { return false };
        let header = cx.pool.header_mut(record);
        header.count = header.count.saturating_sub(1);
        let is_last = header.count == 0;
        if is_last {
            self.forget(cx, record);
        }
        is_last
    }

    fn forget(&mut self, cx: &mut Context<'_, '_>, record: Block) {
        cx.index.remove(cx.pool, cx.pool.header(record).key(), record);
        self.departures.remove(cx.pool, record);
        self.held = self.held.saturating_sub(cx.pool.free(record));
    }

    /// Gives everything back.
    pub(super) fn clear(&mut self, cx: &mut Context<'_, '_>) {
        while let Some(chunk) = self.flight.oldest() {
            cx.index.remove(cx.pool, cx.pool.header(chunk).key(), chunk);
            self.flight.remove(cx.pool, chunk);
            cx.pool.free(chunk);
        }
        while let Some(record) = self.departures.oldest() {
            self.forget(cx, record);
        }
        self.waiting.free_all(cx.pool);
        self.window = Departures::default();
        self.held = 0;
        self.counts.in_flight = 0;
        self.counts.waiting = 0;
    }
}

/// Writes the packet of a chunk.
fn write(cx: &Context<'_, '_>, chunk: Block, writer: &mut Writer<'_>) -> Result<(), WireError> {
    let BlockHeader { reliability, sequence, chunk: number, last, .. } = *cx.pool.header(chunk);
    let position = if last == Some(number) { Position::Last } else { Position::Inner };
    Header::Chunk { reliability, position, chunk: number, sequence }.write(writer)?;
    let mut at = Some(chunk);
    while let Some(block) = at {
        writer.bytes(cx.pool.bytes(block))?;
        at = cx.pool.next(block);
    }
    Ok(())
}
