//! What a connection receives: datagrams, capsules, messages (supplement 4.13, 4.14).

use super::ack_tracker::DatagramStatus;
use super::block_header::BlockHeader;
use super::handshake::ClosingNotification;
use super::metrics::Metric;
use super::recovery::{AckSummary, LOOKUPS_PER_DATAGRAM};
use super::reorder_buffer::{Disposition, comes_before};
use super::{Connection, Context, State};
use crate::cursor::{Reader, Source, WireError};
use crate::raknet::delivery::Channel;
use crate::raknet::event::Progress;
use crate::raknet::stats::DropReason;
use crate::raknet::wire::capsule::{CapsuleHeader, MIN_CAPSULE};
use crate::raknet::wire::control::MAX_CONTROL;
use crate::raknet::wire::datagram::{DatagramHeader, Record};
use crate::raknet::wire::id;
use crate::raknet::wire::{IP_UDP_OVERHEAD, Wire};
use crate::serial::U24;
use crate::storage::{Arrival, Block, Purpose, Queue};

/// Datagrams after which an acknowledgement no longer waits for more.
const ACKNOWLEDGE_AT_ONCE: u32 = 8;

/// Bytes of the longest datagram that is looked at: what fits an Ethernet frame, whatever MTU was agreed on.
const LONGEST_DATAGRAM: usize = 1500 - IP_UDP_OVERHEAD as usize;

/// Why a capsule could not be taken: its datagram stays unacknowledged, and the other peer sends it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReceiveError {
    NoMemory,
    OutsideWindow,
}

/// Messages that wait for the application, and the memory that everything received takes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Inbox {
    messages: Queue,
    /// Blocks of messages and parts that are held or wait for the application.
    blocks: usize,
    /// Blocks promised to messages that arrive in parts.
    pub(super) promised: usize,
    /// The records of those messages.
    pub(super) partials: Queue,
    /// How far the last of them has come, if that is to be told.
    pub(super) progress: Option<Progress>,
}

impl Inbox {
    pub(super) const fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Whether this connection may take `blocks` more for a message. What has to wait for others gets half, so that
    /// those others always find room.
    pub(super) const fn admits(&self, cx: &Context<'_, '_>, blocks: usize, disposition: Disposition) -> bool {
        let quota = match disposition {
            Disposition::Deliver | Disposition::Discard => cx.receive_quota,
            Disposition::Buffer => cx.receive_quota / 2,
        };
        self.blocks + self.promised + blocks <= quota
    }

    pub(super) const fn take(&mut self, blocks: usize) {
        self.blocks += blocks;
    }

    pub(super) const fn give_back(&mut self, blocks: usize) {
        self.blocks = self.blocks.saturating_sub(blocks);
    }

    pub(super) fn clear(&mut self, cx: &mut Context<'_, '_>) {
        self.messages.free_all(cx.pool);
        self.progress = None;
        self.blocks = 0;
    }
}

/// The bytes of a message that arrived whole, or was put together before.
#[derive(Clone, Copy)]
pub(super) enum Content<'d> {
    Arrived(&'d [u8]),
    Stored(Block),
}

impl Connection {
    /// Whether datagrams of this connection may begin with any byte.
    pub(crate) const fn hides_first_bytes(&self) -> bool {
        self.mode.hides_first_bytes()
    }

    /// Takes a datagram of this connection.
    pub(crate) fn handle_datagram(&mut self, cx: &mut Context<'_, '_>, datagram: &[u8]) {
        self.metrics.add(cx.now, Metric::ActualReceived, datagram.len());
        if datagram.len() > LONGEST_DATAGRAM {
            cx.stats.drop(DropReason::BadDatagram);
            return;
        }
        let mut buffer = [0; LONGEST_DATAGRAM];
        match self.mode.open(datagram, &mut buffer) {
            Some(opened) => self.handle_opened(cx, opened),
            None => cx.stats.drop(DropReason::BadDatagram),
        }
    }

    fn handle_opened(&mut self, cx: &mut Context<'_, '_>, datagram: &[u8]) {
        let mut reader = Reader::new(datagram);
        let parsed = match DatagramHeader::read(&mut reader) {
            Ok(DatagramHeader::Data { number, .. }) => self.handle_data(cx, number, reader),
            Ok(DatagramHeader::Ack { records, .. }) => self.handle_acknowledgement(cx, records, reader),
            Ok(DatagramHeader::Nack { records }) => self.handle_missing(cx, records, reader),
            Err(error) => Err(error),
        };
        self.collect_receipts(cx);
        match parsed {
            Ok(()) => self.times.silent_since = cx.now,
            Err(_) => cx.stats.drop(DropReason::BadDatagram),
        }
    }

    fn handle_acknowledgement(
        &mut self,
        cx: &mut Context<'_, '_>,
        records: u16,
        mut reader: Reader<'_>,
    ) -> Result<(), WireError> {
        let (mut lookups, mut summary) = (LOOKUPS_PER_DATAGRAM, AckSummary::default());
        let parsed = (0..records).try_for_each(|_| {
            let record = Record::read(&mut reader)?;
            self.recovery.on_acknowledged(cx, &mut self.send_queue, record, &mut lookups, &mut summary);
            Ok(())
        });
        self.recovery.conclude(cx, summary);
        if self.recovery.is_empty() && !self.send_queue.has_resends() {
            self.times.owed_since = None;
        }
        parsed
    }

    fn handle_missing(
        &mut self,
        cx: &mut Context<'_, '_>,
        records: u16,
        mut reader: Reader<'_>,
    ) -> Result<(), WireError> {
        let mut lookups = LOOKUPS_PER_DATAGRAM;
        for _ in 0..records {
            let record = Record::read(&mut reader)?;
            self.recovery.on_nack_record(cx, record, &mut lookups);
        }
        Ok(())
    }

    fn handle_data(
        &mut self,
        cx: &mut Context<'_, '_>,
        number: U24,
        reader: Reader<'_>,
    ) -> Result<(), WireError> {
        if matches!(self.state, State::Free | State::Opening(_) | State::Aborting | State::Gone) {
            // A peer that still sends has not heard that it is over.
            self.closing_notification = ClosingNotification::Due;
            cx.stats.drop(DropReason::Unexpected);
            return Ok(());
        }
        let status = self.ack_tracker.classify(number);
        let parsed = match status {
            DatagramStatus::OutsideWindow => {
                cx.stats.drop(DropReason::OutsideWindow);
                return Ok(());
            }
            DatagramStatus::Duplicate => {
                cx.stats.drop(DropReason::DuplicateDatagram);
                Ok(())
            }
            DatagramStatus::New | DatagramStatus::Deferred => {
                match self.handle_capsules(cx, reader, status) {
                    Err(refused) => {
                        cx.stats.drop(match refused {
                            ReceiveError::NoMemory => DropReason::NoMemory,
                            ReceiveError::OutsideWindow => DropReason::OutsideWindow,
                        });
                        self.ack_tracker.defer(number);
                        return Ok(());
                    }
                    Ok(parsed) => {
                        self.counters.datagrams_received += 1;
                        parsed
                    }
                }
            }
        };
        self.ack_tracker.commit(number);
        self.schedule_acknowledgement(cx);
        parsed
    }

    fn schedule_acknowledgement(&mut self, cx: &Context<'_, '_>) {
        let waits = self.recovery.rtt.is_known()
            && matches!(self.state, State::Connected | State::Closing)
            && self.ack_tracker.unacknowledged() < ACKNOWLEDGE_AT_ONCE;
        if !waits {
            self.times.acknowledge_at = Some(cx.now);
        } else if self.times.acknowledge_at.is_none() {
            self.times.acknowledge_at = Some(cx.now + cx.config.ack_delay);
        }
    }

    /// Takes the capsules of a datagram. A malformed one ends it; what came before it stands. One that finds no room
    /// does not keep those behind it out: they may be what makes room.
    fn handle_capsules(
        &mut self,
        cx: &mut Context<'_, '_>,
        mut reader: Reader<'_>,
        status: DatagramStatus,
    ) -> Result<Result<(), WireError>, ReceiveError> {
        let mut refused = Ok(());
        let mut parsed = Ok(());
        // The closing side resends until its closing_notification is acknowledged; nothing else of it counts any more.
        while reader.remaining() >= MIN_CAPSULE
            && !matches!(self.state, State::Aborting | State::Draining | State::Refusing | State::Gone)
        {
            let capsule = match CapsuleHeader::read(&mut reader) {
                Ok(capsule) => capsule,
                // Zeros after the last capsule are padding.
                Err(WireError::BadLength) => break,
                Err(error) => {
                    parsed = Err(error);
                    break;
                }
            };
            match reader.take(capsule.length()) {
                // What is unreliable had its chance when the datagram came first.
                Ok(_) if status == DatagramStatus::Deferred && !capsule.reliability.has_number_on_wire() => {}
                Ok(payload) => refused = self.handle_capsule(cx, &capsule, payload).and(refused),
                Err(error) => {
                    parsed = Err(error);
                    break;
                }
            }
        }
        refused.map(|()| parsed)
    }

    fn handle_capsule(
        &mut self,
        cx: &mut Context<'_, '_>,
        capsule: &CapsuleHeader,
        payload: &[u8],
    ) -> Result<(), ReceiveError> {
        if !capsule.reliability.has_number_on_wire() {
            // Nobody waits for it, so that it finds no room says nothing of what does.
            let starved_since = self.times.starved_since;
            let handled = self.handle_once(cx, capsule, payload);
            if handled.is_err() {
                self.times.starved_since = starved_since;
            }
            return handled;
        }
        match self.reliable.check(cx.pool, capsule.reliable) {
            Arrival::Duplicate => {
                self.metrics.add(cx.now, Metric::Ignored, payload.len());
                cx.stats.drop(DropReason::DuplicateMessage);
                Ok(())
            }
            Arrival::TooFar => Err(ReceiveError::OutsideWindow),
            Arrival::New if !self.reliable.prepare(cx.pool, capsule.reliable) => Err(ReceiveError::NoMemory),
            Arrival::New => {
                self.handle_once(cx, capsule, payload)?;
                self.reliable.mark(cx.pool, capsule.reliable);
                Ok(())
            }
        }
    }

    fn handle_once(
        &mut self,
        cx: &mut Context<'_, '_>,
        capsule: &CapsuleHeader,
        payload: &[u8],
    ) -> Result<(), ReceiveError> {
        let header = BlockHeader::received(cx.slot, capsule);
        if header.has_place() {
            self.prepare_channel(cx, header.channel)?;
        }
        match capsule.split {
            Some(split) => self.handle_part(cx, header, split, payload),
            None => self.handle_whole(cx, &header, Content::Arrived(payload)),
        }
    }

    /// Takes the memory of a channel that was not used yet.
    #[inline]
    fn prepare_channel(&mut self, cx: &mut Context<'_, '_>, channel: u8) -> Result<(), ReceiveError> {
        let missing = self.channels.missing_blocks(cx.pool, channel);
        if missing == 0 {
            return Ok(());
        }
        // Once for a connection, so not of the share of its messages.
        if self.channels.prepare(cx.pool, channel, Purpose::Receive) { Ok(()) } else { Err(self.starve(cx)) }
    }

    /// Takes a whole message: delivers it, keeps it for its disposition or drops it as outdated.
    pub(super) fn handle_whole(
        &mut self,
        cx: &mut Context<'_, '_>,
        header: &BlockHeader,
        content: Content<'_>,
    ) -> Result<(), ReceiveError> {
        match self.disposition(cx, header) {
            Disposition::Deliver if !header.has_place() => self.deliver(cx, header, content),
            Disposition::Deliver => {
                self.deliver(cx, header, content)?;
                self.pass(cx, header);
                self.deliver_buffered(cx, header.channel)
            }
            Disposition::Buffer => self.buffer_message(cx, header, content),
            Disposition::Discard => {
                self.ignore(cx, content);
                Ok(())
            }
        }
    }

    /// When a message may be delivered.
    pub(super) fn disposition(&self, cx: &Context<'_, '_>, header: &BlockHeader) -> Disposition {
        if !header.has_place() {
            return Disposition::Deliver;
        }
        self.channels.get(cx.pool, header.channel).disposition(header)
    }

    fn pass(&mut self, cx: &mut Context<'_, '_>, header: &BlockHeader) {
        self.channels.update(cx.pool, header.channel, |channel, _| channel.pass(header));
    }

    /// Keeps a message until its disposition comes.
    fn buffer_message(
        &mut self,
        cx: &mut Context<'_, '_>,
        header: &BlockHeader,
        content: Content<'_>,
    ) -> Result<(), ReceiveError> {
        let message = self.store(cx, header, content, Disposition::Buffer)?;
        self.channels.update(cx.pool, header.channel, |channel, pool| {
            channel.buffered.push(pool, message, comes_before);
        });
        Ok(())
    }

    /// Delivers what waited for the message that just passed.
    fn deliver_buffered(&mut self, cx: &mut Context<'_, '_>, number: u8) -> Result<(), ReceiveError> {
        while let Some(first) = self.channels.get(cx.pool, number).buffered.first() {
            let header = *cx.pool.header(first);
            let disposition = self.disposition(cx, &header);
            if disposition == Disposition::Buffer {
                break;
            }
            self.channels.update(cx.pool, number, |channel, pool| {
                channel.buffered.pop(pool, comes_before);
                if disposition == Disposition::Deliver {
                    channel.pass(&header);
                }
            });
            if disposition == Disposition::Deliver {
                self.deliver(cx, &header, Content::Stored(first))?;
            } else {
                self.ignore(cx, Content::Stored(first));
            }
        }
        Ok(())
    }

    /// Hands a message to RakNet itself or to the application.
    fn deliver(
        &mut self,
        cx: &mut Context<'_, '_>,
        header: &BlockHeader,
        content: Content<'_>,
    ) -> Result<(), ReceiveError> {
        let first_byte = match content {
            Content::Arrived(payload) => payload.first(),
            Content::Stored(message) => cx.pool.bytes(message).first(),
        };
        if first_byte.is_none_or(|byte| *byte < id::TIMESTAMP) {
            self.deliver_control(cx, content);
            return Ok(());
        }
        if matches!(self.state, State::Unverified) {
            cx.stats.drop(DropReason::BadControl);
            self.discard(cx, content);
            return Ok(());
        }
        let message = self.store(cx, header, content, Disposition::Deliver)?;
        self.inbox.messages.push(cx.pool, message);
        self.times.starved_since = None;
        Ok(())
    }

    fn deliver_control(&mut self, cx: &mut Context<'_, '_>, content: Content<'_>) {
        let message = match content {
            Content::Arrived(payload) => return self.handle_control(cx, payload),
            Content::Stored(message) => message,
        };
        let mut buffer = [0; MAX_CONTROL];
        let payload = cx.pool.copy(message, &mut buffer);
        self.discard(cx, content);
        match payload {
            Some(payload) => self.handle_control(cx, payload),
            None => cx.stats.drop(DropReason::BadControl),
        }
    }

    /// Copies a message into the pool, unless it stands there already.
    fn store(
        &mut self,
        cx: &mut Context<'_, '_>,
        header: &BlockHeader,
        content: Content<'_>,
        disposition: Disposition,
    ) -> Result<Block, ReceiveError> {
        let payload = match content {
            Content::Stored(message) => return Ok(message),
            Content::Arrived(payload) => payload,
        };
        let blocks = cx.pool.blocks_for(payload.len());
        let stored = if self.inbox.admits(cx, blocks, disposition) {
            cx.pool.store(payload, Purpose::Receive, header)
        } else {
            None
        };
        match stored {
            Some(message) => {
                self.times.starved_since = None;
                self.inbox.take(blocks);
                Ok(message)
            }
            None => Err(self.starve(cx)),
        }
    }

    /// Notes that something did not fit. That is the other peer's doing only while the application has nothing to read.
    pub(super) fn starve(&mut self, cx: &Context<'_, '_>) -> ReceiveError {
        if self.inbox.is_empty() {
            self.times.starved_since.get_or_insert(cx.now);
        }
        ReceiveError::NoMemory
    }

    /// Drops a message that a newer one has outdated.
    fn ignore(&mut self, cx: &mut Context<'_, '_>, content: Content<'_>) {
        let bytes = match content {
            Content::Arrived(payload) => payload.len(),
            Content::Stored(message) => cx.pool.size(message),
        };
        self.metrics.add(cx.now, Metric::Ignored, bytes);
        cx.stats.drop(DropReason::OutOfSequence);
        self.discard(cx, content);
    }

    fn discard(&mut self, cx: &mut Context<'_, '_>, content: Content<'_>) {
        if let Content::Stored(message) = content {
            let freed = cx.pool.free(message);
            self.inbox.give_back(freed);
        }
    }

    /// Moves receipts to where the application reads.
    pub(super) fn collect_receipts(&mut self, cx: &mut Context<'_, '_>) {
        let (receipts, count) = self.send_queue.take_settled();
        self.inbox.messages.append(cx.pool, receipts);
        self.inbox.take(count);
    }

    /// Takes the news of a message in parts.
    pub(crate) fn take_progress(&mut self) -> Option<Progress> {
        self.inbox.progress.take().or_else(|| self.send_queue.take_progress())
    }

    /// Takes the next message or receipt for the application.
    pub(crate) fn take_message(&mut self, cx: &mut Context<'_, '_>) -> Option<Block> {
        let message = self.inbox.messages.pop(cx.pool)?;
        self.times.starved_since = None;
        if cx.pool.header(message).receipt().is_some() {
            return Some(message);
        }
        self.counters.messages_received += 1;
        self.metrics.add(cx.now, Metric::Processed, cx.pool.size(message));
        self.translate_timestamp(cx, message);
        Some(message)
    }

    /// The time in a time-stamped message is the sender's; the application reads its own (supplement 3.3).
    fn translate_timestamp(&self, cx: &mut Context<'_, '_>, message: Block) {
        let Some((&mut id::TIMESTAMP, rest)) = cx.pool.bytes_mut(message).split_first_mut() else { return };
        let Some(difference) = self.ping_stats.difference() else { return };
        if let Some(time) = rest.first_chunk_mut::<8>() {
            *time = u64::from_be_bytes(*time).wrapping_sub(difference as u64).to_be_bytes();
        }
    }

    /// Notes that the application has read a message whose memory went back to the pool.
    pub(crate) const fn on_read(&mut self, blocks: usize) {
        self.inbox.give_back(blocks);
    }

    /// Whether datagrams were refused that there may be room for now.
    pub(crate) const fn has_refused(&self) -> bool {
        self.ack_tracker.has_deferred()
    }

    /// Asks for the datagrams that were refused, once half of the share is free again: for less, most of them would
    /// come in vain.
    pub(crate) fn recall(&mut self, cx: &mut Context<'_, '_>) {
        if self.inbox.admits(cx, 0, Disposition::Buffer) {
            self.ack_tracker.nack_deferred();
        }
    }

    /// Gives back what arrived and cannot be delivered any more; messages that wait for the application stay.
    pub(super) fn clear_received(&mut self, cx: &mut Context<'_, '_>) {
        self.clear_partials(cx);
        self.reliable.clear(cx.pool);
        for channel in 0..Channel::COUNT as u8 {
            let freed = self.channels.get(cx.pool, channel).buffered.free_all(cx.pool);
            self.inbox.give_back(freed);
        }
        self.channels.clear(cx.pool);
        self.times.starved_since = None;
    }
}
