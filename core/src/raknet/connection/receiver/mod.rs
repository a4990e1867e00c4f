//! The receiving side of a connection: datagrams, capsules and messages (docs/raknet.md#receiving).
//!
//! Complete messages are delivered to the application's queue, or buffered until they are next on their channel. While
//! a lost datagram is retransmitted, all later messages of its channel are buffered, and even a short message would
//! take a block. To save memory, a message that directly follows the last buffered one is appended to its block, after
//! its length in two bytes. It is moved to a block of its own when it is next in order.

mod ack_tracker;
mod reassembly;
mod reorder_buffer;
mod share;

pub(super) use ack_tracker::DatagramStatus;
use ack_tracker::{AckTracker, RecordKind, RecvStates};
use reassembly::{ArrivedPart, Reassembly};
use reorder_buffer::{Disposition, ReorderBuffer, disposition};
pub(super) use share::ReceiveError;
use share::ReceiveShare;

use super::block_header::{BlockHeader, Context, IncomingMessage};
use super::channels::{Channels, NEAR};
use crate::cursor::Writer;
use crate::endpoint::Progress;
use crate::raknet::config::{FAR_CHANNELS, PACKING, SPLITTING};
use crate::raknet::delivery::Channel;
use crate::raknet::stats::{ConnectionStats, Count, DropReason, Metrics};
use crate::raknet::wire::datagram::{CapsuleHeader, Sizes, Split};
use crate::raknet::wire::id;
use crate::serial::U24;
use crate::storage::{Arrival, Block, BlockLink, Purpose, Queue, SparseWindow};
use crate::time::Instant;

/// The number of unacknowledged datagrams from which an acknowledgement is sent immediately.
const ACK_AT_ONCE: u32 = 8;

/// The received bytes that are counted.
#[derive(Clone, Copy)]
enum ReceivedBytes {
    /// Bytes of messages delivered to the application.
    Processed,
    /// Bytes of duplicate or outdated capsules.
    Ignored,
    /// Bytes of datagrams, without IP and UDP headers.
    Datagrams,
}

/// The location of a message's bytes.
#[derive(Clone, Copy)]
pub(super) enum Payload<'d> {
    /// In the datagram that is being handled.
    Borrowed(&'d [u8]),
    /// In the pool.
    Stored(Block),
}

/// A control message of RakNet.
#[derive(Clone, Copy)]
pub(super) struct ControlMessage<'d> {
    pub(super) payload: Payload<'d>,
    /// The channel on which buffered messages may be deliverable after this one.
    channel: Option<u8>,
}

/// The receiving side of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Receiver {
    datagrams: AckTracker,
    /// When an acknowledgement is due.
    ack_at: Option<Instant>,
    /// The reliable message numbers received so far.
    reliable: SparseWindow,
    channels: Channels<ReorderBuffer>,
    reassembly: Reassembly,
    /// The block of the message buffered last, if another message may be appended to it.
    packing: BlockLink,
    /// A bit for each channel with a message that is next in order, but has no block of its own yet.
    stalled: u32,
    /// Messages and receipts for the application.
    receive_queue: Queue,
    share: ReceiveShare,
    metrics: Metrics<3>,
    messages_received: Count,
    datagrams_received: Count,
}

impl Receiver {
    /// Sets the first expected datagram and message number of a new receiver.
    pub(super) fn start_numbers_at(&mut self, start: U24) {
        self.datagrams.start_numbers_at(start);
        self.reliable = SparseWindow::new(start);
    }

    /// Adds the receiver's figures to the statistics.
    pub(super) fn fill_stats(&self, now: Instant, stats: &mut ConnectionStats) {
        let [processed, ignored, datagrams] = self.metrics.amounts(now);
        stats.messages_received = self.messages_received.get();
        stats.datagrams_received = self.datagrams_received.get();
        stats.bytes_processed = processed;
        stats.bytes_ignored = ignored;
        stats.actual_bytes_received = datagrams;
    }

    fn count(&mut self, now: Instant, metric: ReceivedBytes, bytes: usize) {
        self.metrics.add(now, metric as usize, bytes);
    }

    /// Counts a received datagram of any kind.
    pub(super) fn on_datagram(&mut self, now: Instant, bytes: usize) {
        self.count(now, ReceivedBytes::Datagrams, bytes);
    }

    /// Classifies the number of a data datagram.
    pub(super) fn classify(&self, cx: &mut Context<'_, '_>, number: U24) -> DatagramStatus {
        self.datagrams.classify(&recv_states(cx), number)
    }

    /// Counts a data datagram after all its capsules have been accepted.
    pub(super) const fn on_datagram_taken(&mut self) {
        self.datagrams_received.add_one();
    }

    /// Schedules the acknowledgement of a datagram, no later than `latest`.
    pub(super) fn acknowledge(&mut self, cx: &mut Context<'_, '_>, number: U24, latest: Instant) {
        // RFC 9000 section 13.2.1: datagrams after a gap are acknowledged immediately, because the peer detects the
        // loss by them.
        let has_gap = !self.datagrams.is_next(number);
        self.datagrams.commit(&mut recv_states(cx), number);
        if self.datagrams.unacknowledged() >= ACK_AT_ONCE || latest <= cx.now || has_gap {
            self.ack_at = Some(cx.now);
        } else if self.ack_at.is_none() {
            self.ack_at = Some(latest);
        }
    }

    /// Records that a datagram did not fit into memory completely.
    pub(super) fn defer(&mut self, cx: &mut Context<'_, '_>, number: U24) {
        self.datagrams.defer(&mut recv_states(cx), number);
    }

    /// Returns when an acknowledgement is due.
    pub(super) fn ack_deadline(&self) -> Option<Instant> {
        self.ack_at.filter(|_| self.datagrams.unacknowledged() > 0)
    }

    /// Writes an acknowledgement or a negative acknowledgement, if one is due.
    pub(super) fn compose(
        &mut self,
        cx: &mut Context<'_, '_>,
        sizes: Sizes,
        buffer: &mut [u8],
    ) -> Option<usize> {
        if self.datagrams.unacknowledged() > 0 && self.ack_at.is_none_or(|at| at <= cx.now) {
            let length = self.compose_records(cx, RecordKind::Ack, sizes, buffer);
            if self.datagrams.unacknowledged() == 0 {
                self.ack_at = None;
            }
            if length.is_some() {
                return length;
            }
        }
        if !self.datagrams.has_missing() {
            return None;
        }
        self.compose_records(cx, RecordKind::Nack, sizes, buffer)
    }

    fn compose_records(
        &mut self,
        cx: &mut Context<'_, '_>,
        kind: RecordKind,
        sizes: Sizes,
        buffer: &mut [u8],
    ) -> Option<usize> {
        let mut writer = Writer::new(buffer);
        self.datagrams.write(&mut recv_states(cx), kind, &mut writer, sizes.body()).ok()?;
        Some(writer.written())
    }

    /// Handles a capsule.
    ///
    /// A control message is returned to the caller, which handles it and then calls [`resume`](Self::resume).
    pub(super) fn on_capsule<'d>(
        &mut self,
        cx: &mut Context<'_, '_>,
        sizes: Sizes,
        capsule: &CapsuleHeader,
        payload: &'d [u8],
        takes_messages: bool,
    ) -> Result<Option<ControlMessage<'d>>, ReceiveError> {
        if !capsule.reliability.has_number_on_wire() {
            // An unreliable message is not retransmitted, so it does not indicate exhausted memory.
            let exhausted_since = self.share.exhausted_since();
            let handled = self.on_new_capsule(cx, sizes, capsule, payload, takes_messages);
            if handled.is_err() {
                self.share.set_exhausted_since(exhausted_since);
            }
            return handled;
        }
        match self.reliable.check(cx.pool, capsule.reliable) {
            Arrival::Duplicate => {
                self.count(cx.now, ReceivedBytes::Ignored, payload.len());
                cx.stats.drop(DropReason::DuplicateMessage);
                if SPLITTING && let Some(split) = capsule.split {
                    let message = IncomingMessage::of(capsule);
                    self.reassembly.on_duplicate(cx, &mut self.share, message, capsule.reliable, split);
                }
                Ok(None)
            }
            Arrival::TooFar => Err(ReceiveError::OutsideWindow),
            Arrival::New if !self.reliable.prepare(cx.pool, &mut self.share.held, capsule.reliable) => {
                Err(ReceiveError::NoMemory)
            }
            Arrival::New => {
                let handled = self.on_new_capsule(cx, sizes, capsule, payload, takes_messages);
                if handled.is_ok() {
                    self.reliable.mark(cx.pool, &mut self.share.held, capsule.reliable);
                }
                handled
            }
        }
    }

    fn on_new_capsule<'d>(
        &mut self,
        cx: &mut Context<'_, '_>,
        sizes: Sizes,
        capsule: &CapsuleHeader,
        payload: &'d [u8],
        takes_messages: bool,
    ) -> Result<Option<ControlMessage<'d>>, ReceiveError> {
        let message = IncomingMessage::of(capsule);
        if message.is_in_order() {
            self.prepare_channel(cx, message.channel)?;
        }
        let payload = match capsule.split {
            None => Payload::Borrowed(payload),
            // Without the feature `full` a split message closes the connection, like a message that exceeds its memory.
            Some(_) if !SPLITTING => return Err(ReceiveError::MessageTooLarge),
            Some(split) if self.reassembly.is_superseded(&message, capsule.reliable, split) => {
                self.count(cx.now, ReceivedBytes::Ignored, payload.len());
                cx.stats.drop(DropReason::DuplicateMessage);
                return Ok(None);
            }
            Some(split) => match self.on_part(cx, sizes, message, split, payload)? {
                Some(whole) => Payload::Stored(whole),
                None => return Ok(None),
            },
        };
        self.on_message(cx, &message, payload, takes_messages)
    }

    /// Allocates the state of a channel at its first use.
    ///
    /// It is charged once per connection, outside the limit for messages.
    #[inline]
    fn prepare_channel(&mut self, cx: &mut Context<'_, '_>, channel: u8) -> Result<(), ReceiveError> {
        if !FAR_CHANNELS && usize::from(channel) >= NEAR {
            return Err(self.no_room(cx));
        }
        let missing = self.channels.missing_blocks(cx.pool, channel);
        if missing == 0 || self.channels.prepare(cx.pool, &mut self.share.held, Purpose::Receive, channel) {
            Ok(())
        } else {
            Err(self.no_room(cx))
        }
    }

    /// Stores a part; returns the reassembled message if no part is missing.
    fn on_part(
        &mut self,
        cx: &mut Context<'_, '_>,
        sizes: Sizes,
        message: IncomingMessage,
        split: Split,
        payload: &[u8],
    ) -> Result<BlockLink, ReceiveError> {
        let part = ArrivedPart { message, split, payload, channels: &self.channels };
        match self.reassembly.on_part(cx, &mut self.share, sizes, &part) {
            Err(ReceiveError::NoMemory) => Err(self.no_room(cx)),
            Ok(Some(whole)) => {
                // The sender of a long message may be waiting for the acknowledgement of the last parts. Messages of
                // few parts are excluded, because an immediate acknowledgement for each of them would be expensive.
                if split.count > ACK_AT_ONCE {
                    self.ack_at = Some(cx.now);
                }
                Ok(Some(whole))
            }
            result => result,
        }
    }

    fn no_room(&mut self, cx: &Context<'_, '_>) -> ReceiveError {
        self.share.on_no_room(cx.now, self.receive_queue.is_empty());
        ReceiveError::NoMemory
    }

    /// Returns the time since which the memory of the connection has been exhausted, or `None`.
    pub(super) const fn exhausted_since(&self) -> Option<Instant> {
        self.share.exhausted_since()
    }

    pub(super) const fn has_progress(&self) -> bool {
        SPLITTING && self.reassembly.progress.is_some()
    }

    /// Takes the progress of a split message that is being received.
    pub(super) const fn take_progress(&mut self) -> Option<Progress> {
        if SPLITTING { self.reassembly.progress.take() } else { None }
    }

    /// Called when the application has read a message and its blocks were freed.
    pub(super) fn on_read(&mut self, cx: &mut Context<'_, '_>, blocks: usize) {
        self.share.release(cx, blocks);
    }

    /// Returns true if datagrams were deferred or messages wait for a block, and there may be memory for them.
    pub(super) const fn has_deferred(&self) -> bool {
        self.datagrams.has_deferred() || PACKING && self.stalled != 0
    }

    /// Reports deferred datagrams as missing once half of the share is free.
    ///
    /// If they were retransmitted earlier, most of them would be deferred again.
    pub(super) fn nack_deferred(&mut self, cx: &mut Context<'_, '_>) {
        if self.share.admits(cx, 0, Disposition::Buffer) {
            self.datagrams.nack_deferred(&recv_states(cx));
        }
    }

    /// Frees received data that can no longer be delivered. Messages for the application remain.
    pub(super) fn clear_undelivered(&mut self, cx: &mut Context<'_, '_>) {
        self.packing = None;
        self.stalled = 0;
        if SPLITTING {
            self.reassembly.clear(cx, &mut self.share);
        }
        self.reliable.clear(cx.pool, &mut self.share.held);
        for channel in 0..Channel::COUNT as u8 {
            let freed = self.channels.get(cx.pool, channel).free_all(cx);
            self.share.release(cx, freed);
        }
        self.channels.clear(cx.pool, &mut self.share.held);
        self.share.on_fit();
    }

    /// Frees everything.
    pub(super) fn clear(&mut self, cx: &mut Context<'_, '_>) {
        self.clear_undelivered(cx);
        self.receive_queue.free_all(cx.pool);
        self.reassembly.progress = None;
        cx.pool.shares.close(&mut self.share.held);
        self.share = ReceiveShare::default();
    }
}

/// Returns the states of the received datagrams of this connection.
#[cfg_attr(target_pointer_width = "64", inline)]
#[cfg_attr(not(target_pointer_width = "64"), inline(never))]
fn recv_states<'c>(cx: &'c mut Context<'_, '_>) -> RecvStates<'c> {
    RecvStates::new(cx.state.loss_history.window(cx.slot))
}

impl Receiver {
    /// Handles a complete message: delivers it, buffers it, or drops it as outdated.
    fn on_message<'d>(
        &mut self,
        cx: &mut Context<'_, '_>,
        message: &IncomingMessage,
        payload: Payload<'d>,
        takes_messages: bool,
    ) -> Result<Option<ControlMessage<'d>>, ReceiveError> {
        match disposition(&self.channels, cx, message) {
            Disposition::Deliver => {
                let channel = message.is_in_order().then_some(message.channel);
                let is_control = is_control(cx, payload);
                if !is_control {
                    self.deliver(cx, message, payload, takes_messages)?;
                }
                let has_buffered = channel.is_some_and(|number| {
                    self.channels.update(cx.pool, number, |channel, _| {
                        channel.advance(message);
                        channel.first().is_some()
                    })
                });
                match channel {
                    _ if is_control => Ok(Some(ControlMessage { payload, channel })),
                    Some(number) if has_buffered => self.deliver_buffered(cx, number, takes_messages),
                    Some(_) | None => Ok(None),
                }
            }
            Disposition::Buffer => {
                if PACKING
                    && let Payload::Borrowed(payload) = payload
                    && self.pack(cx, message, payload)
                {
                    return Ok(None);
                }
                let message_block = self.store(cx, message, payload, Disposition::Buffer)?;
                self.packing = (!message.is_sequenced()).then_some(message_block);
                self.channels.update(cx.pool, message.channel, |channel, pool| {
                    channel.push(pool, message_block);
                });
                Ok(None)
            }
            Disposition::Discard => {
                self.ignore(cx, payload);
                Ok(None)
            }
        }
    }

    /// Continues after the caller has handled a control message.
    pub(super) fn resume(
        &mut self,
        cx: &mut Context<'_, '_>,
        control: &ControlMessage<'_>,
        takes_messages: bool,
    ) -> Result<Option<ControlMessage<'static>>, ReceiveError> {
        match control.channel {
            Some(number) => self.deliver_buffered(cx, number, takes_messages),
            None => Ok(None),
        }
    }

    /// Delivers the buffered messages of a channel that are next in order.
    pub(super) fn deliver_buffered(
        &mut self,
        cx: &mut Context<'_, '_>,
        number: u8,
        takes_messages: bool,
    ) -> Result<Option<ControlMessage<'static>>, ReceiveError> {
        self.packing = None;
        while let Some(first) = self.channels.get(cx.pool, number).first() {
            let Some(&message) = cx.pool.header(first).received() else { break };
            let disposition = disposition(&self.channels, cx, &message);
            if disposition == Disposition::Buffer {
                break;
            }
            let first = if !PACKING || message.followers == 0 {
                self.channels.update(cx.pool, number, |channel, pool| channel.pop(pool))
            } else {
                self.unpack_first(cx, message)
            };
            let Some(first) = first else { break };
            if disposition == Disposition::Deliver {
                self.channels.update(cx.pool, number, |channel, _| channel.advance(&message));
            }
            let payload = Payload::Stored(first);
            if disposition == Disposition::Discard {
                self.ignore(cx, payload);
            } else if is_control(cx, payload) {
                return Ok(Some(ControlMessage { payload, channel: Some(number) }));
            } else {
                self.deliver(cx, &message, payload, takes_messages)?;
            }
        }
        Ok(None)
    }

    /// Queues a message for the application.
    fn deliver(
        &mut self,
        cx: &mut Context<'_, '_>,
        message: &IncomingMessage,
        payload: Payload<'_>,
        takes_messages: bool,
    ) -> Result<(), ReceiveError> {
        if !takes_messages {
            cx.stats.drop(DropReason::BadControl);
            self.discard(cx, payload);
            return Ok(());
        }
        let message = self.store(cx, message, payload, Disposition::Deliver)?;
        self.receive_queue.push(cx.pool, message);
        self.share.on_fit();
        Ok(())
    }

    /// Returns the bytes of a control message; if it is stored in the pool, it is copied to `buffer` and freed.
    pub(super) fn control_bytes<'b>(
        &mut self,
        cx: &mut Context<'_, '_>,
        control: &ControlMessage<'b>,
        buffer: &'b mut [u8],
    ) -> Option<&'b [u8]> {
        match control.payload {
            Payload::Borrowed(payload) => Some(payload),
            Payload::Stored(message) => {
                let bytes = cx.pool.copy(message, buffer);
                self.discard(cx, control.payload);
                if bytes.is_none() {
                    cx.stats.drop(DropReason::BadControl);
                }
                bytes
            }
        }
    }

    /// Copies a message into the pool, unless it is already there.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn store(
        &mut self,
        cx: &mut Context<'_, '_>,
        message: &IncomingMessage,
        payload: Payload<'_>,
        disposition: Disposition,
    ) -> Result<Block, ReceiveError> {
        let payload = match payload {
            Payload::Stored(message) => return Ok(message),
            Payload::Borrowed(payload) => payload,
        };
        let blocks = cx.pool.blocks_for(payload.len());
        if !self.share.take(cx, blocks, disposition) {
            return Err(self.no_room(cx));
        }
        let Some(message) = cx.pool.store(payload, &BlockHeader::Received(*message)) else {
            self.share.release(cx, blocks);
            return Err(self.no_room(cx));
        };
        self.share.on_fit();
        Ok(message)
    }

    /// Drops an outdated message.
    fn ignore(&mut self, cx: &mut Context<'_, '_>, payload: Payload<'_>) {
        let bytes = match payload {
            Payload::Borrowed(payload) => payload.len(),
            Payload::Stored(message) => cx.pool.size(message),
        };
        self.count(cx.now, ReceivedBytes::Ignored, bytes);
        cx.stats.drop(DropReason::OutOfSequence);
        self.discard(cx, payload);
    }

    fn discard(&mut self, cx: &mut Context<'_, '_>, payload: Payload<'_>) {
        if let Payload::Stored(message) = payload {
            let freed = cx.pool.free(message);
            self.share.release(cx, freed);
        }
    }

    /// Queues receipts for the application. Their blocks stay charged to the send share.
    pub(super) fn push_receipts(&mut self, cx: &mut Context<'_, '_>, receipts: Queue) {
        self.receive_queue.append(cx.pool, receipts);
    }

    /// Returns true if no message or receipt is queued for the application.
    pub(super) const fn is_read(&self) -> bool {
        self.receive_queue.is_empty()
    }

    /// Takes the next message or receipt for the application.
    ///
    /// `clock_difference` is the remote clock minus the local clock in milliseconds.
    pub(super) fn take_message(
        &mut self,
        cx: &mut Context<'_, '_>,
        clock_difference: impl FnOnce() -> Option<i64>,
    ) -> Option<Block> {
        let message = self.receive_queue.pop(cx.pool)?;
        self.share.on_fit();
        if cx.pool.header(message).receipt().is_none() {
            self.messages_received.add_one();
            self.count(cx.now, ReceivedBytes::Processed, cx.pool.size(message));
            translate_timestamp(cx, message, clock_difference);
        }
        Some(message)
    }
}

/// Returns true if a message is a control message of RakNet.
fn is_control(cx: &Context<'_, '_>, payload: Payload<'_>) -> bool {
    let first_byte = match payload {
        Payload::Borrowed(payload) => payload.first(),
        Payload::Stored(message) => cx.pool.contents(message).first(),
    };
    first_byte.is_none_or(|byte| *byte < id::TIMESTAMP)
}

/// Converts the sender's time in a timestamped message to the local clock (docs/raknet.md#pings).
fn translate_timestamp(
    cx: &mut Context<'_, '_>,
    message: Block,
    clock_difference: impl FnOnce() -> Option<i64>,
) {
    let Some((&mut id::TIMESTAMP, rest)) = cx.pool.contents_mut(message).split_first_mut() else { return };
    let Some(difference) = clock_difference() else { return };
    if let Some(time) = rest.first_chunk_mut::<8>() {
        *time = u64::from_be_bytes(*time).wrapping_sub(difference as u64).to_be_bytes();
    }
}

impl Receiver {
    /// Appends a message to the block of the message that was buffered last.
    ///
    /// Returns false if `message` does not directly follow that message, or does not fit into the block.
    fn pack(&self, cx: &mut Context<'_, '_>, message: &IncomingMessage, payload: &[u8]) -> bool {
        let Some(block) = self.packing else { return false };
        let Some(mut first) = cx.pool.header(block).received().copied() else { return false };
        let follows = first.channel == message.channel
            && first.reliability == message.reliability
            && first.order.plus(u32::from(first.followers) + 1) == message.order
            && first.followers < u8::MAX;
        let (size, Ok(length)) = (cx.pool.size(block), u16::try_from(payload.len())) else { return false };
        if !follows || !cx.pool.append(block, [&length.to_le_bytes(), payload]) {
            return false;
        }
        if first.followers == 0 {
            first.length = u16::try_from(size).unwrap_or(u16::MAX);
        }
        first.followers += 1;
        *cx.pool.header_mut(block) = BlockHeader::Received(first);
        true
    }

    /// Moves the first message of a channel from a shared block to a block of its own.
    ///
    /// Returns `None` if no block is free.
    fn unpack_first(&mut self, cx: &mut Context<'_, '_>, first: IncomingMessage) -> BlockLink {
        if !self.share.take(cx, 1, Disposition::Deliver) {
            self.no_room(cx);
            self.stalled |= 1_u32.checked_shl(first.channel.into()).unwrap_or(0);
            return None;
        }
        let front = self.split_first(cx, first);
        if front.is_none() {
            self.share.release(cx, 1);
        }
        front
    }

    /// Moves the first message of a channel out of its shared block.
    fn split_first(&mut self, cx: &mut Context<'_, '_>, first: IncomingMessage) -> BlockLink {
        let packed = self.channels.update(cx.pool, first.channel, |channel, pool| channel.pop(pool))?;
        let alone = IncomingMessage { followers: 0, length: 0, ..first };
        let front = cx.pool.split_front(packed, first.length.into(), &BlockHeader::Received(alone));
        let rest = if front.is_some() { without_first(cx, packed, first) } else { first };
        *cx.pool.header_mut(packed) = BlockHeader::Received(rest);
        self.channels.update(cx.pool, first.channel, |channel, pool| channel.push(pool, packed));
        front
    }

    /// Returns true if messages that are next in order wait for blocks.
    pub(super) const fn is_stalled(&self) -> bool {
        PACKING && self.stalled != 0
    }

    /// Takes the channels with messages that wait for blocks, as a bit mask.
    pub(super) const fn take_stalled(&mut self) -> u32 {
        if PACKING { core::mem::replace(&mut self.stalled, 0) } else { 0 }
    }
}

/// Removes the first message of a shared block and returns the next one.
fn without_first(cx: &mut Context<'_, '_>, packed: Block, first: IncomingMessage) -> IncomingMessage {
    let length = cx.pool.bytes(packed).first_chunk().copied().map_or(0, u16::from_le_bytes);
    cx.pool.drop_front(packed, 2);
    IncomingMessage {
        order: first.order.next(),
        followers: first.followers.saturating_sub(1),
        length,
        ..first
    }
}
