//! The sending side of a connection: it splits messages into chunks and retransmits unacknowledged ones.

use super::block_header::{Bits, BlockHeader, Context, OutgoingChunk, SplitSend, WINDOW, find, key};
use super::rtt::{ResendLimit, RttEstimator};
use crate::cursor::{WireError, Writer};
use crate::endpoint::{Carrier, SendError};
use crate::game_protocol::config::{ConnectionStats, DropReason};
use crate::game_protocol::wire::{CHUNK, Header, MAX_PAYLOAD, Position, Reliability, chunks_of};
use crate::storage::{Block, List, NoRoom, Purpose, Queue, Share};
use crate::time::Instant;

/// The sending side of a connection.
#[derive(Debug, Default)]
pub(super) struct Sender {
    /// The sequence of the next message.
    next: u16,
    /// Chunks queued for their first transmission, ordered by sequence.
    waiting: Queue,
    /// Unacknowledged reliable chunks, ordered by the time of their last transmission.
    in_flight: List,
    /// Records of unacknowledged reliable messages of several chunks.
    split_sends: List,
    window: SendWindow,
    /// The share of blocks that these chunks and records hold.
    share: Share,
    rtt: RttEstimator,
    resend_limit: ResendLimit,
    /// The time of the last acknowledgement.
    last_acked_at: Instant,
    /// The latest send time of an acknowledged chunk that was never retransmitted.
    newest_acked_sent_at: Instant,
    /// The latest send time of an acknowledged chunk that was retransmitted, assuming that its last transmission was
    /// acknowledged.
    newest_acked_resent_at: Instant,
    /// The time at which the carrier last changed. Chunks sent earlier are not in the new stream.
    carrier_since: Instant,
    /// The time at which a chunk that the stream may be delaying was last retransmitted.
    probed_at: Instant,
    /// Set once the connection is closing. The remaining time is too short to wait for a stream.
    is_closing: bool,
    counts: Counts,
}

/// The presumed state of an unacknowledged chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LossState {
    /// Retransmitted after the resend interval, as over UDP.
    Plain,
    /// Lost between the relay and the remote peer, unless acknowledgements of chunks sent at about the same time still
    /// arrive.
    Presumed,
    /// Possibly delayed by the stream.
    HeldBack,
}

/// Counters of the sending side.
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
    /// Sets the first sequence of a new sender.
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

    /// Returns true if nothing is queued and every reliable chunk was acknowledged.
    pub(super) const fn is_delivered(&self) -> bool {
        self.waiting.is_empty() && self.in_flight.is_empty()
    }

    /// Splits a message into chunks and queues all of them or none.
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

    /// Charges the blocks of a message, or returns an error if they are not available.
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

    /// Checks whether a message of `length` bytes would be accepted.
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

    /// Returns the number of blocks of a message.
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

    /// Returns the maximum length of a message; a peer with the same configuration and memory can receive it.
    ///
    /// The receiver reserves blocks for all chunks and one for their record.
    pub(super) fn max_message_len(&self, cx: &Context<'_, '_>) -> usize {
        let shares = &cx.pool.shares;
        let blocks = shares.most(&self.share, Purpose::Send).min(shares.most(&self.share, Purpose::Receive));
        let in_one = blocks.saturating_mul(cx.pool.block_size()).min(CHUNK);
        let chunks = blocks.saturating_sub(1).checked_div(cx.pool.blocks_for(CHUNK)).unwrap_or(0);
        chunks.saturating_mul(CHUNK).max(in_one).min(MAX_PAYLOAD)
    }

    /// Returns the error for a message that needs `blocks` blocks.
    fn refusal(&self, cx: &Context<'_, '_>, blocks: usize, no_room: NoRoom) -> SendError {
        match no_room {
            _ if !cx.pool.shares.could_hold(&self.share, blocks, 0, Purpose::Send) => SendError::NeverFits,
            NoRoom::InShare => SendError::QuotaExceeded,
            NoRoom::InPool => SendError::PoolExhausted,
        }
    }

    /// Returns true if so many messages are queued that the sequence of a further message would count as older than
    /// the sequence of the first.
    fn would_wrap(&self, cx: &Context<'_, '_>) -> bool {
        let first = self.waiting.front().map(|chunk| cx.pool.header(chunk).outgoing().sequence);
        first.is_some_and(|first| self.next.wrapping_sub(first) >= u16::MAX / 2)
    }

    /// Writes the next packet: a chunk to retransmit, or a new one.
    pub(super) fn poll_transmit(&mut self, cx: &mut Context<'_, '_>, writer: &mut Writer<'_>) -> Option<()> {
        match self.resend_at(cx) {
            Some((at, chunk)) if at <= cx.now => self.resend(cx, chunk, writer),
            Some(_) | None => self.send_next(cx, writer),
        }
    }

    /// Returns when the chunk with the oldest transmission is to be retransmitted.
    pub(super) fn resend_at(&self, cx: &Context<'_, '_>) -> Option<(Instant, Block)> {
        let oldest = self.in_flight.oldest()?;
        let sent_at = cx.pool.header(oldest).sent_at();
        let resend = cx.config.resend_interval;
        let at = match self.loss_state(cx, sent_at) {
            LossState::Plain => sent_at.plus_micros(self.interval(cx)).max(self.resend_limit.earliest()),
            LossState::Presumed => sent_at.max(self.last_acked_at).plus_micros(self.rtt.stream_pause(resend)),
            // While acknowledgements arrive, the stream delivers data, so they restart the timeout (RFC 6298, section
            // 5.3).
            LossState::HeldBack => {
                let since = sent_at.max(self.last_acked_at).max(self.probed_at);
                since.plus_micros(self.rtt.stream_timeout(resend))
            }
        };
        Some((at, oldest))
    }

    /// Returns the resend interval of chunks in the state [`LossState::Plain`], in microseconds.
    ///
    /// Over a stream the order of acknowledgements has shown that the chunk is lost.
    fn interval(&self, cx: &Context<'_, '_>) -> u32 {
        let resend = cx.config.resend_interval;
        if self.is_closing || cx.config.carrier != Carrier::Datagrams {
            self.rtt.shortest_interval(resend)
        } else {
            self.rtt.interval(resend, cx.config.timeout)
        }
    }

    /// Returns the presumed state of an unacknowledged chunk sent at `sent_at`.
    ///
    /// A stream preserves order, so the acknowledgement of a chunk sent later shows that this chunk was lost between
    /// the relay and the remote peer.
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

    /// Records that the connection is closing: unacknowledged chunks are retransmitted after the shortest interval.
    pub(super) const fn close(&mut self) {
        self.rtt.reset_backoff();
        self.rtt.forget_spurious_resends();
        self.is_closing = true;
    }

    /// Records that the carrier of the datagrams has changed.
    pub(super) const fn on_new_carrier(&mut self, now: Instant) {
        self.rtt.reset_backoff();
        self.rtt.forget_spurious_resends();
        self.resend_limit = ResendLimit::NONE;
        self.carrier_since = now;
    }

    /// Updates the state of the stream after the acknowledgement of a chunk.
    ///
    /// After a timeout, an acknowledgement may belong to either transmission (RFC 5682). If it belongs to the first,
    /// the stream is delivering data again, and acknowledgements of chunks sent at about the same time follow. If none
    /// follows, the acknowledgement belongs to the last transmission, and the other chunks were lost between the relay
    /// and the remote peer.
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
        // Over a stream every timeout doubles the interval, so delayed data is probed and not retransmitted as a whole.
        let is_probe = self.loss_state(cx, header.sent_at()) == LossState::HeldBack;
        if is_again || is_probe {
            self.rtt.back_off();
        }
        if is_probe {
            self.probed_at = cx.now;
        }
        let interval = self.interval(cx);
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

    /// Returns the next chunk that may be sent, and drops expired unreliable messages before it.
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

    /// Drops the chunks of the message at the front of the queue.
    fn drop_waiting(&mut self, cx: &mut Context<'_, '_>, sequence: u16) {
        let is_of_it = |cx: &Context<'_, '_>, chunk| cx.pool.header(chunk).outgoing().sequence == sequence;
        while let Some(chunk) = self.waiting.front().filter(|chunk| is_of_it(cx, *chunk)) {
            self.waiting.pop(cx.pool);
            self.counts.waiting = self.counts.waiting.saturating_sub(1);
            self.free(cx, chunk);
        }
    }

    /// Counts an acknowledgement of a chunk that is not in flight, because another transmission was acknowledged
    /// before.
    ///
    /// The count never exceeds the number of retransmissions, even if the remote peer sends more acknowledgements.
    fn note_repeated_ack(&mut self, cx: &Context<'_, '_>) {
        if self.counts.late < self.counts.resent {
            self.counts.late += 1;
            self.rtt.on_spurious_resend(cx.now, cx.config.resend_interval, cx.config.timeout);
        }
    }

    /// Handles the acknowledgement of a chunk; returns false if the chunk is not in flight.
    pub(super) fn on_ack(&mut self, cx: &mut Context<'_, '_>, sequence: u16, index: u8) -> bool {
        let key = key::in_flight(cx.slot, sequence, index);
        let Some(block) = find(cx, key) else {
            self.note_repeated_ack(cx);
            return false;
        };
        let header = *cx.pool.header(block);
        let OutgoingChunk { last, transmissions, .. } = *header.outgoing();
        // The acknowledgement of a retransmitted chunk may refer to any transmission (RFC 6298, section 3).
        if transmissions == 1 {
            self.rtt.on_sample(cx.now, header.sent_at());
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

    /// Records the acknowledgement of one chunk of a message of several chunks; returns true if no chunk is left
    /// unacknowledged.
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

    /// Frees a chunk or a record and releases its blocks from the share.
    fn free(&mut self, cx: &mut Context<'_, '_>, block: Block) {
        let freed = cx.pool.free(block);
        cx.pool.shares.release(&mut self.share, freed);
    }

    /// Returns the share of blocks held by chunks, queued or in flight.
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

/// The reliable sequences in flight.
///
/// A sender stays within one window of the oldest unacknowledged sequence. Otherwise the receiver could not distinguish
/// a late chunk from a chunk of an older sequence.
#[derive(Clone, Copy, Debug, Default)]
struct SendWindow {
    oldest: u16,
    count: u16,
    open: Bits,
}

impl SendWindow {
    /// Returns true if `sequence`, the next to be sent, is within the window.
    const fn admits(&self, sequence: u16) -> bool {
        self.count == 0 || sequence.wrapping_sub(self.oldest) < WINDOW
    }

    /// Adds a reliable sequence to the window. Precondition: [`admits`](Self::admits) returned true.
    fn open(&mut self, sequence: u16) {
        if self.count == 0 {
            self.oldest = sequence;
        }
        if !self.open.get(sequence) {
            self.open.set(sequence);
            self.count += 1;
        }
    }

    /// Removes a sequence from the window after all its chunks have been acknowledged.
    fn close(&mut self, sequence: u16) {
        if !self.open.get(sequence) {
            return;
        }
        self.open.clear(sequence);
        self.count = self.count.saturating_sub(1);
        // Each step moves past a closed sequence. Bits outside the window are always clear.
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
    fn a_sender_stays_within_one_window_of_the_oldest_sequence() {
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
