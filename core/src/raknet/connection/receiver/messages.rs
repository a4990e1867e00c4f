//! Whole messages: which are delivered, which wait for their turn, and what the application takes.

use super::reorder_buffer::{Disposition, disposition};
use super::{ControlMessage, Payload, ReceiveError, ReceivedBytes, Receiver};
use crate::raknet::connection::block_header::{BlockHeader, IncomingMessage};
use crate::raknet::connection::context::Context;
use crate::raknet::features::PACKING;
use crate::raknet::stats::DropReason;
use crate::raknet::wire::id;
use crate::storage::{Block, Queue};

impl Receiver {
    /// Takes a whole message: delivers it, keeps it for its turn, or drops it as outdated.
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

    /// Continues after a message of RakNet itself was handled.
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

    /// Delivers the buffered messages of a channel whose turn has come.
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
        self.budget.on_fit();
        Ok(())
    }

    /// The bytes of a message of RakNet itself; a stored one is freed, and its bytes are copied to `buffer`.
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

    /// Copies a message into the pool, unless it is there already.
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
        if !self.budget.take(cx, blocks, disposition) {
            return Err(self.no_room(cx));
        }
        let Some(message) = cx.pool.store(payload, &BlockHeader::Received(*message)) else {
            self.budget.give_back(cx, blocks);
            return Err(self.no_room(cx));
        };
        self.budget.on_fit();
        Ok(message)
    }

    /// Drops a message that a newer one has outdated.
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
            self.budget.give_back(cx, freed);
        }
    }

    /// Queues receipts for the application. Their blocks stay charged to what is sent.
    pub(in super::super) fn push_receipts(&mut self, cx: &mut Context<'_, '_>, receipts: Queue) {
        self.receive_queue.append(cx.pool, receipts);
    }

    /// Whether nothing waits for the application.
    pub(in super::super) const fn is_read(&self) -> bool {
        self.receive_queue.is_empty()
    }

    /// Takes the next message or receipt for the application. `clock_difference` is the other peer's clock minus this one.
    pub(in super::super) fn take_message(
        &mut self,
        cx: &mut Context<'_, '_>,
        clock_difference: impl FnOnce() -> Option<i64>,
    ) -> Option<Block> {
        let message = self.receive_queue.pop(cx.pool)?;
        self.budget.on_fit();
        if cx.pool.header(message).receipt().is_none() {
            self.messages_received.add_one();
            self.count(cx.now, ReceivedBytes::Processed, cx.pool.size(message));
            translate_timestamp(cx, message, clock_difference);
        }
        Some(message)
    }
}

/// Whether a message is for RakNet itself and not for the application.
fn is_control(cx: &Context<'_, '_>, payload: Payload<'_>) -> bool {
    let first_byte = match payload {
        Payload::Borrowed(payload) => payload.first(),
        Payload::Stored(message) => cx.pool.contents(message).first(),
    };
    first_byte.is_none_or(|byte| *byte < id::TIMESTAMP)
}

/// Translates the sender's time in a message with a time stamp to this peer's clock (docs/raknet.md#pings).
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
