//! What one connection sends: messages cut into chunks, and the chunks that are not acknowledged.

use super::block_header::{Bits, BlockHeader, Context, OutgoingChunk, SplitSend, WINDOW, find, key};
use super::rtt::{ResendLimit, RttEstimator};
use crate::cursor::{WireError, Writer};
use crate::endpoint::{Carrier, SendError};
use crate::game_protocol::config::{ConnectionStats, DropReason};
use crate::game_protocol::wire::{CHUNK, Header, MAX_PAYLOAD, Position, Reliability, chunks_of};
use crate::storage::{Block, List, NoRoom, Purpose, Queue, Share};
use crate::time::Instant;

/// The sending half of a connection.
#[derive(Debug, Default)]
pub(super) struct Sender {
    /// The sequence of the next message.
    next: u16,
    /// Chunks that wait to be sent for the first time, in the order of their sequences.
    waiting: Queue,
    /// Reliable chunks that are not acknowledged, in the order in which they were sent last.
    in_flight: List,
    /// Records of reliable messages of several chunks that are not acknowledged.
    split_sends: List,
    window: SendWindow,
    /// Blocks of all these.
    share: Share,
    rtt: RttEstimator,
    resend_limit: ResendLimit,
    /// When something was acknowledged last.
    last_acked_at: Instant,
    /// When the newest chunk was sent that was sent once and is acknowledged.
    newest_acked_sent_at: Instant,
    /// The same of chunks that were sent more than once, if the acknowledgement is of the last transmission.
    newest_acked_resent_at: Instant,
    /// Since when something else carries the datagrams: what was sent before does not travel there.
    carrier_since: Instant,
    /// When a chunk that a stream may hold back was sent again last.
    probed_at: Instant,
    /// Whether nothing waits for a stream any more: the connection is closing, and has little time.
    is_closing: bool,
    counts: Counts,
}

/// What is to be thought of a chunk that is not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LossState {
    /// It is sent again after the interval of resends.
    Plain,
    /// It was lost behind a stream, unless the stream brings acknowledgements of what was sent with it.
    Presumed,
    /// A stream may hold it back.
    HeldBack,
}

/// What the sending half counts.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    messages: u64,
    sent: u64,
    resent: u64,
    late: u64,
    acknowledged: u64,
    in_flight: u32,
    waiting: u32,
}

impl Sender {
    /// Lets the sequences of a new sender start at `sequence`.
    pub(super) const fn start_sequences_at(&mut self, sequence: u16) {
        self.next = sequence;
    }

    pub(super) const fn fill_stats(&self, stats: &mut ConnectionStats) {
        stats.messages_sent = self.counts.messages;
        stats.chunks_sent = self.counts.sent;
        stats.chunks_resent = self.counts.resent;
        stats.chunks_late = self.counts.late;
        stats.chunks_acknowledged = self.counts.acknowledged;
        stats.in_flight = self.counts.in_flight;
        stats.waiting = self.counts.waiting;
        stats.round_trip = self.rtt.srtt();
    }

    /// Whether nothing waits and everything reliable was acknowledged.
    pub(super) const fn is_delivered(&self) -> bool {
        self.waiting.is_empty() && self.in_flight.is_empty()
    }

    /// Cuts a message into chunks and queues them; all or none.
    pub(super) fn push(
        &mut self,
        cx: &mut Context<'_, '_>,
        payload: &[u8],
        reliability: Reliability,
    ) -> Result<(), SendError> {
        self.admit(cx, payload.len(), reliability)?;
        let (owner, sequence) = (cx.slot, self.next);
        let chunks = chunks_of(payload.len());
        if chunks > 1 && reliability.is_reliable() {
            let unacknowledged = u16::try_from(chunks).unwrap_or(u16::MAX);
            let header = BlockHeader::SplitSend(SplitSend { owner, sequence, unacknowledged });
            let record = cx.pool.store(&[], &header).ok_or(SendError::PoolExhausted)?;
            cx.index.insert(cx.pool, key::split_send(owner, sequence), record);
            self.split_sends.push(cx.pool, record);
        }
        let last = u8::try_from(chunks - 1).unwrap_or(u8::MAX);
        for (index, bytes) in (0..=u8::MAX).zip(payload.chunks(CHUNK)) {
            let chunk = OutgoingChunk { owner, sequence, index, last, transmissions: 0, reliability };
            let block = cx.pool.store(bytes, &BlockHeader::Queued(chunk, cx.now));
            self.waiting.push(cx.pool, block.ok_or(SendError::PoolExhausted)?);
            self.counts.waiting += 1;
        }
        self.next = self.next.wrapping_add(1);
        self.counts.messages += 1;
        Ok(())
    }

    /// Charges the blocks that a message takes, if there is room for it.
    fn admit(
        &mut self,
        cx: &mut Context<'_, '_>,
        length: usize,
        reliability: Reliability,
    ) -> Result<(), SendError> {
        let blocks = self.blocks_for(cx, length, reliability)?;
        let charged = cx.pool.shares.charge(&mut self.share, blocks, Purpose::Send);
        charged.map_err(|no_room| self.refusal(cx, blocks, no_room))
    }

    /// Whether a message of so many bytes would be accepted now.
    pub(super) fn can_push(
        &self,
        cx: &Context<'_, '_>,
        length: usize,
        reliability: Reliability,
    ) -> Result<(), SendError> {
        let blocks = self.blocks_for(cx, length, reliability)?;
        let checked = cx.pool.shares.check(&self.share, blocks, Purpose::Send);
        checked.map_err(|no_room| self.refusal(cx, blocks, no_room))
    }

    /// How many blocks a message takes.
    fn blocks_for(
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
        if inner > 0 && length > self.max_message_len(cx) {
            return Err(SendError::NeverFits);
        }
        let record = usize::from(inner > 0 && reliability.is_reliable());
        let blocks = inner * cx.pool.blocks_for(CHUNK) + cx.pool.blocks_for(length - inner * CHUNK) + record;
        if self.would_wrap(cx) { Err(SendError::QuotaExceeded) } else { Ok(blocks) }
    }

    /// The longest message that is taken and that an equal peer can receive: that promises blocks for all chunks, and one for
    /// the record of them.
    pub(super) fn max_message_len(&self, cx: &Context<'_, '_>) -> usize {
        let shares = &cx.pool.shares;
        let blocks = shares.most(&self.share, Purpose::Send).min(shares.most(&self.share, Purpose::Receive));
        let in_one = blocks.saturating_mul(cx.pool.block_size()).min(CHUNK);
        let chunks = blocks.saturating_sub(1).checked_div(cx.pool.blocks_for(CHUNK)).unwrap_or(0);
        chunks.saturating_mul(CHUNK).max(in_one).min(MAX_PAYLOAD)
    }

    /// Why a message of so many blocks is not accepted.
    fn refusal(&self, cx: &Context<'_, '_>, blocks: usize, no_room: NoRoom) -> SendError {
        match no_room {
            _ if !cx.pool.shares.could_hold(&self.share, blocks, 0, Purpose::Send) => SendError::NeverFits,
            NoRoom::InShare => SendError::QuotaExceeded,
            NoRoom::InPool => SendError::PoolExhausted,
        }
    }

    /// Whether so many messages wait that the sequence of another one would count as older than the first of them.
    fn would_wrap(&self, cx: &Context<'_, '_>) -> bool {
        let first = self.waiting.front().map(|chunk| cx.pool.header(chunk).outgoing().sequence);
        first.is_some_and(|first| self.next.wrapping_sub(first) >= u16::MAX / 2)
    }

    /// Writes the next packet: a chunk that is due again, or a new one.
    pub(super) fn poll_transmit(&mut self, cx: &mut Context<'_, '_>, writer: &mut Writer<'_>) -> Option<()> {
        match self.resend_at(cx) {
            Some((at, chunk)) if at <= cx.now => self.resend(cx, chunk, writer),
            Some(_) | None => self.send_next(cx, writer),
        }
    }

    /// When the chunk that was sent longest ago is sent again.
    pub(super) fn resend_at(&self, cx: &Context<'_, '_>) -> Option<(Instant, Block)> {
        let oldest = self.in_flight.oldest()?;
        let sent_at = cx.pool.header(oldest).sent_at();
        let resend = cx.config.resend_interval;
        let at = match self.loss_state(cx, sent_at) {
            LossState::Plain => {
                sent_at.plus_micros(self.rtt.interval(resend)).max(self.resend_limit.earliest())
            }
            LossState::Presumed => sent_at.max(self.last_acked_at).plus_micros(self.rtt.stream_pause(resend)),
            // As long as acknowledgements arrive the stream moves (RFC 6298 section 5.3).
            LossState::HeldBack => {
                let since = sent_at.max(self.last_acked_at).max(self.probed_at);
                since.plus_micros(self.rtt.stream_timeout(resend))
            }
        };
        Some((at, oldest))
    }

    /// What is to be thought of a chunk sent at that time that is not acknowledged. What a stream carries keeps its order, so a
    /// later chunk that is acknowledged tells that this one was lost behind it.
    fn loss_state(&self, cx: &Context<'_, '_>, sent_at: Instant) -> LossState {
        if cx.config.carrier == Carrier::Datagrams || self.is_closing || sent_at < self.newest_acked_sent_at {
            LossState::Plain
        } else if sent_at
            <= self.carrier_since.max(self.newest_acked_resent_at).max(self.newest_acked_sent_at)
        {
            LossState::Presumed
        } else {
            LossState::HeldBack
        }
    }

    /// The connection is closing: what is not acknowledged is sent again as over datagrams.
    pub(super) const fn close(&mut self) {
        self.rtt.reset_backoff();
        self.is_closing = true;
    }

    /// Something else carries the datagrams from now on.
    pub(super) const fn on_new_carrier(&mut self, now: Instant) {
        self.rtt.reset_backoff();
        self.resend_limit = ResendLimit::NONE;
        self.carrier_since = now;
    }

    /// Notes what the acknowledgement of a chunk tells about a stream.
    ///
    /// After a timeout it may be of either transmission (RFC 5682): if it is of the first one, the stream moves again and
    /// acknowledgements of what was sent with it follow; if none does, it is of the last one, and the rest was lost behind
    /// the stream.
    fn note_order(&mut self, sent_at: Instant, transmissions: u8) {
        if transmissions > 1 {
            self.newest_acked_resent_at = self.newest_acked_resent_at.max(sent_at);
            return;
        }
        self.newest_acked_sent_at = self.newest_acked_sent_at.max(sent_at);
        if sent_at < self.newest_acked_resent_at {
            self.newest_acked_resent_at = Instant::ZERO;
        }
    }

    fn resend(&mut self, cx: &mut Context<'_, '_>, chunk: Block, writer: &mut Writer<'_>) -> Option<()> {
        let header = cx.pool.header(chunk);
        let is_again = self.last_acked_at <= header.sent_at() && header.outgoing().transmissions > 1;
        // Over a stream each timeout counts, so that what waits in it is probed and not sent again as a whole.
        let is_probe = self.loss_state(cx, header.sent_at()) == LossState::HeldBack;
        if is_again || is_probe {
            self.rtt.back_off();
        }
        if is_probe {
            self.probed_at = cx.now;
        }
        let interval = self.rtt.interval(cx.config.resend_interval);
        self.resend_limit.count(cx.now, interval, self.last_acked_at);
        self.in_flight.remove(cx.pool, chunk);
        self.in_flight.push(cx.pool, chunk);
        if let BlockHeader::InFlight(chunk, sent_at) = cx.pool.header_mut(chunk) {
            *sent_at = cx.now;
            chunk.transmissions = chunk.transmissions.saturating_add(1);
        }
        self.counts.resent += 1;
        write(cx, chunk, writer).ok()
    }

    fn send_next(&mut self, cx: &mut Context<'_, '_>, writer: &mut Writer<'_>) -> Option<()> {
        let block = self.next_waiting(cx)?;
        self.waiting.pop(cx.pool);
        self.counts.waiting = self.counts.waiting.saturating_sub(1);
        self.counts.sent += 1;
        let written = write(cx, block, writer);
        let chunk = *cx.pool.header(block).outgoing();
        if chunk.reliability.is_reliable() {
            let sent = OutgoingChunk { transmissions: 1, ..chunk };
            *cx.pool.header_mut(block) = BlockHeader::InFlight(sent, cx.now);
            self.window.open(chunk.sequence);
            cx.index.insert(cx.pool, key::in_flight(chunk.owner, chunk.sequence, chunk.index), block);
            self.in_flight.push(cx.pool, block);
            self.counts.in_flight += 1;
        } else {
            self.free(cx, block);
        }
        written.ok()
    }

    /// The next chunk that may be sent. Unreliable messages that have waited too long are dropped on the way to it.
    fn next_waiting(&mut self, cx: &mut Context<'_, '_>) -> Option<Block> {
        loop {
            let block = self.waiting.front()?;
            let BlockHeader::Queued(chunk, queued_at) = *cx.pool.header(block) else {
                debug_assert!(false, "not a chunk that waits to be sent");
                return None;
            };
            let is_outdated = chunk.index == 0
                && !chunk.reliability.is_reliable()
                && queued_at + cx.config.unreliable_timeout < cx.now;
            if !is_outdated {
                return self.window.admits(chunk.sequence).then_some(block);
            }
            cx.stats.drop(DropReason::Expired);
            self.drop_waiting(cx, chunk.sequence);
        }
    }

    /// Drops the chunks of the message that waits at the front.
    fn drop_waiting(&mut self, cx: &mut Context<'_, '_>, sequence: u16) {
        let is_of_it = |cx: &Context<'_, '_>, chunk| cx.pool.header(chunk).outgoing().sequence == sequence;
        while let Some(chunk) = self.waiting.front().filter(|chunk| is_of_it(cx, *chunk)) {
            self.waiting.pop(cx.pool);
            self.counts.waiting = self.counts.waiting.saturating_sub(1);
            self.free(cx, chunk);
        }
    }

    /// Notes the acknowledgement of a chunk that is not in flight: another transmission of it was acknowledged before. Not more are
    /// counted than were sent again, whatever the other peer says.
    fn note_repeated_ack(&mut self) {
        self.counts.late = self.counts.resent.min(self.counts.late + 1);
    }

    /// The other peer has acknowledged a chunk; false if none such is in flight.
    pub(super) fn on_ack(&mut self, cx: &mut Context<'_, '_>, sequence: u16, index: u8) -> bool {
        let key = key::in_flight(cx.slot, sequence, index);
        let Some(block) = find(cx, key) else {
            self.note_repeated_ack();
            return false;
        };
        let header = *cx.pool.header(block);
        let OutgoingChunk { last, transmissions, .. } = *header.outgoing();
        // The acknowledgement of a chunk that was sent again may be for any of its transmissions (RFC 6298 section 3).
        if transmissions == 1 {
            self.rtt.sample(cx.now.micros_since(header.sent_at()));
        }
        self.note_order(header.sent_at(), transmissions);
        self.rtt.reset_backoff();
        self.resend_limit.on_ack();
        self.last_acked_at = cx.now;
        cx.index.remove(cx.pool, key, block);
        self.in_flight.remove(cx.pool, block);
        self.free(cx, block);
        self.counts.in_flight = self.counts.in_flight.saturating_sub(1);
        self.counts.acknowledged += 1;
        if last == 0 || self.was_last_unacknowledged(cx, sequence) {
            self.window.close(sequence);
        }
        true
    }

    /// Notes that a chunk of a message of several was acknowledged; whether it was the last one.
    fn was_last_unacknowledged(&mut self, cx: &mut Context<'_, '_>, sequence: u16) -> bool {
        let Some(record) = find(cx, key::split_send(cx.slot, sequence)) else { return false };
        let BlockHeader::SplitSend(split_send) = cx.pool.header_mut(record) else { return false };
        split_send.unacknowledged = split_send.unacknowledged.saturating_sub(1);
        let is_last = split_send.unacknowledged == 0;
        if is_last {
            self.free_record(cx, record);
        }
        is_last
    }

    fn free_record(&mut self, cx: &mut Context<'_, '_>, record: Block) {
        remove_from_index(cx, record);
        self.split_sends.remove(cx.pool, record);
        self.free(cx, record);
    }

    /// Frees a chunk or a record, and gives its blocks back.
    fn free(&mut self, cx: &mut Context<'_, '_>, block: Block) {
        let freed = cx.pool.free(block);
        cx.pool.shares.release(&mut self.share, freed);
    }

    /// Blocks of what waits or is in flight.
    pub(super) const fn share(&self) -> &Share {
        &self.share
    }

    /// Frees everything.
    pub(super) fn clear(&mut self, cx: &mut Context<'_, '_>) {
        while let Some(chunk) = self.in_flight.oldest() {
            remove_from_index(cx, chunk);
            self.in_flight.remove(cx.pool, chunk);
            cx.pool.free(chunk);
        }
        while let Some(record) = self.split_sends.oldest() {
            self.free_record(cx, record);
        }
        self.waiting.free_all(cx.pool);
        self.window = SendWindow::default();
        cx.pool.shares.close(&mut self.share);
        self.counts.in_flight = 0;
        self.counts.waiting = 0;
    }
}

fn remove_from_index(cx: &mut Context<'_, '_>, block: Block) {
    if let Some(key) = cx.pool.header(block).key() {
        cx.index.remove(cx.pool, key, block);
    }
}

/// Writes the packet of a chunk.
fn write(cx: &Context<'_, '_>, chunk: Block, writer: &mut Writer<'_>) -> Result<(), WireError> {
    let OutgoingChunk { reliability, sequence, index, last, .. } = *cx.pool.header(chunk).outgoing();
    let position = if index == last { Position::Last } else { Position::Inner };
    Header::Chunk { reliability, position, chunk: index, sequence }.write(writer)?;
    let mut at = Some(chunk);
    while let Some(block) = at {
        writer.bytes(cx.pool.bytes(block))?;
        at = cx.pool.next(block);
    }
    Ok(())
}

/// The reliable sequences that are under way. A sender stays within one window of the oldest, or the receiver could not
/// tell a late chunk of it from an old one.
#[derive(Clone, Copy, Debug, Default)]
struct SendWindow {
    oldest: u16,
    count: u16,
    open: Bits,
}

impl SendWindow {
    /// Whether `sequence`, the next to be sent, is within the window.
    const fn admits(&self, sequence: u16) -> bool {
        self.count == 0 || sequence.wrapping_sub(self.oldest) < WINDOW
    }

    /// A reliable sequence, which was admitted, leaves.
    fn open(&mut self, sequence: u16) {
        if self.count == 0 {
            self.oldest = sequence;
        }
        if !self.open.get(sequence) {
            self.open.set(sequence);
            self.count += 1;
        }
    }

    /// Every chunk of a sequence was acknowledged.
    fn close(&mut self, sequence: u16) {
        if !self.open.get(sequence) {
            return;
        }
        self.open.clear(sequence);
        self.count = self.count.saturating_sub(1);
        // Bits outside of the window are clear, so each step leaves a sequence behind for good.
        for _ in 0..WINDOW {
            if self.count == 0 || self.open.get(self.oldest) {
                return;
            }
            self.oldest = self.oldest.wrapping_add(1);
        }
        debug_assert!(false, "{} sequences are open and none has a bit", self.count);
        self.count = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sender_stays_within_a_window_of_the_oldest() {
        let mut window = SendWindow::default();
        assert!(window.admits(7));
        window.open(65_500);
        window.open(65_502);
        let last = 65_500_u16.wrapping_add(1_023);
        assert!(window.admits(last) && !window.admits(last.wrapping_add(1)));
        window.close(65_502);
        assert!(!window.admits(last.wrapping_add(1)));
        window.open(3);
        window.close(65_500);
        assert!(window.admits(1_026) && !window.admits(1_027));
        window.close(3);
        assert!(window.admits(30_000));
    }
}
