//! Whole messages: delivery, buffering until their turn, and the queue that the application reads.
//!
//! Buffered messages may share a block. While a lost datagram is retransmitted, everything behind it on its channel
//! waits, and a message takes a block however short it is. So a message that directly follows the one buffered last is
//! appended to the same block, preceded by its length in two bytes. When its turn comes it is moved to a block of its
//! own.

use super::reorder_buffer::{Disposition, disposition};
use super::{ControlMessage, Payload, ReceiveError, ReceivedBytes, Receiver};
use crate::raknet::config::PACKING;
use crate::raknet::connection::block_header::{BlockHeader, Context, IncomingMessage};
use crate::raknet::stats::DropReason;
use crate::raknet::wire::id;
use crate::storage::{Block, BlockLink, Queue};

impl Receiver {
    /// Handles a whole message: delivers it, buffers it until its turn, or drops it as outdated.
    pub(super) fn on_message<'d>(
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

    /// Continues after a control message of RakNet was handled.
    pub(in super::super) fn resume(
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
    pub(in super::super) fn deliver_buffered(
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

    /// Returns the bytes of a control message; a stored one is freed after its bytes were copied to `buffer`.
    pub(in super::super) fn control_bytes<'b>(
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

    /// Drops a message that a newer one has superseded.
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

    /// Queues receipts for the application. Their blocks remain charged to the sending share.
    pub(in super::super) fn push_receipts(&mut self, cx: &mut Context<'_, '_>, receipts: Queue) {
        self.receive_queue.append(cx.pool, receipts);
    }

    /// Returns true if nothing waits for the application.
    pub(in super::super) const fn is_read(&self) -> bool {
        self.receive_queue.is_empty()
    }

    /// Takes the next message or receipt for the application.
    ///
    /// `clock_difference` is the clock of the remote peer minus the local one.
    pub(in super::super) fn take_message(
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

/// Returns true if a message is a control message of RakNet rather than one for the application.
fn is_control(cx: &Context<'_, '_>, payload: Payload<'_>) -> bool {
    let first_byte = match payload {
        Payload::Borrowed(payload) => payload.first(),
        Payload::Stored(message) => cx.pool.contents(message).first(),
    };
    first_byte.is_none_or(|byte| *byte < id::TIMESTAMP)
}

/// Converts the sender's time in a message with a time stamp to the local clock (docs/raknet.md#pings).
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
    /// Appends a message to the one buffered last.
    ///
    /// Returns false if it does not follow that one, or does not fit.
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
    /// Returns `None` if there is no room for that.
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
    pub(in super::super) const fn is_stalled(&self) -> bool {
        PACKING && self.stalled != 0
    }

    /// Takes the channels on which messages wait for blocks, as a bit mask.
    pub(in super::super) const fn take_stalled(&mut self) -> u32 {
        if PACKING { core::mem::replace(&mut self.stalled, 0) } else { 0 }
    }
}

/// Returns the message that is the first one of a block once the previous one was removed.
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
