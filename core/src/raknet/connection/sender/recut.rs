//! Cutting messages again whose parts are too large for a path that has become narrower (docs/raknet.md#path-mtu).
//!
//! A receiver counts the parts of a message and may expect all but the last to be equally long, so a part cannot be cut. But a
//! message of which no part was acknowledged is still here as a whole: it is sent under another split id. The numbers of its
//! parts were used, and receivers wait for each number; so each is that of a ping then, which is dropped if the part has
//! arrived after all.

use super::priority::CLASSES;
use super::queue::{QueueId, SendQueue, part_size, store_ping};
use super::split_sends::renew;
use crate::raknet::connection::block_header::{BlockHeader, OutgoingMessage, SendStatus};
use crate::raknet::connection::context::Context;
use crate::raknet::connection::sizes::Sizes;
use crate::raknet::delivery::Reliability;
use crate::raknet::wire::MAX_MTU;
use crate::raknet::wire::control::Control;
use crate::raknet::wire::datagram::DATA_HEADER;
use crate::serial::U24;
use crate::storage::{Block, BlockLink, Claim, OutsideId, Queue};

/// How messages are cut again.
#[derive(Clone, Copy)]
pub(super) struct Recut<'c> {
    pub(super) sizes: Sizes,
    /// Takes the number of a part that was sent.
    pub(super) ping: &'c Control<'c>,
    /// Bytes of the longest datagram that was ever acknowledged. All parts of a message that fit it may have arrived, and only their
    /// acknowledgements were lost: cut again, a message without a place in an order could arrive twice.
    pub(super) longest_arrived: usize,
}

/// Parts of one message in their order, of which the first `sent` ones were sent.
#[derive(Clone, Copy, Default)]
struct Parts {
    queue: Queue,
    count: usize,
    sent: usize,
    bytes: usize,
    blocks: usize,
}

impl Parts {
    fn push(&mut self, cx: &mut Context<'_, '_>, part: Block, is_sent: bool) {
        let bytes = cx.pool.size(part);
        self.blocks += if cx.pool.is_outside(part) { 1 } else { cx.pool.blocks_for(bytes) };
        self.bytes += bytes;
        self.count += 1;
        self.sent += usize::from(is_sent);
        self.queue.push(cx.pool, part);
    }
}

/// The parts that take their place.
struct NewParts {
    /// The next one.
    message: OutgoingMessage,
    status: SendStatus,
    to: QueueId,
    size: usize,
    queue: Queue,
}

impl Recut<'_> {
    /// Whether a message or a part is longer than one for the path.
    fn is_too_long(&self, cx: &Context<'_, '_>, message: Block) -> bool {
        cx.pool.size(message) > self.sizes.part()
    }

    /// Whether a part as long as this one may have arrived.
    fn may_have_arrived(&self, cx: &Context<'_, '_>, part: Block) -> bool {
        let header = outgoing(cx, part).map_or(0, |message| message.header_size());
        DATA_HEADER + header + cx.pool.size(part) <= self.longest_arrived
    }
}

impl SendQueue {
    /// Cuts messages again that wait to be sent, for the first time or once more. False if one stays in parts that were sent and are
    /// too long.
    #[cold]
    #[inline(never)]
    pub(super) fn recut(&mut self, cx: &mut Context<'_, '_>, how: Recut<'_>) -> bool {
        let (mut waiting, mut lost) = (core::mem::take(&mut self.resend), Queue::default());
        while let Some(block) = waiting.pop(cx.pool) {
            let is_candidate = outgoing(cx, block).is_some_and(|message| {
                message.is_split() && (message.is_last_part() || how.is_too_long(cx, block))
            });
            if is_candidate {
                self.count_out(QueueId::Resend, cx.pool.size(block));
                lost.push(cx.pool, block);
            } else {
                self.resend.push(cx.pool, block);
            }
        }
        let mut are_all_short = true;
        while let Some(message) = lost.front().and_then(|front| outgoing(cx, front)) {
            are_all_short &= self.recut_lost(cx, how, &mut lost, message);
        }
        for class in CLASSES {
            self.recut_new(cx, how, QueueId::New(class));
        }
        are_all_short
    }

    /// Cuts the message again to which a lost part belongs, or leaves its parts as they are; false if one is too long then.
    fn recut_lost(
        &mut self,
        cx: &mut Context<'_, '_>,
        how: Recut<'_>,
        lost: &mut Queue,
        message: OutgoingMessage,
    ) -> bool {
        let (id, mut old) = (message.split_id(), Parts::default());
        for index in 0..message.split_count() {
            if let Some(part) = take_part(cx, lost, id, index) {
                old.push(cx, part, true);
            } else if let Some(part) = self.take_new_part(cx, id, index) {
                old.push(cx, part, false);
            } else {
                break;
            }
        }
        let is_whole = u32::try_from(old.count) == Ok(message.split_count());
        let is_new = |first| old.sent < old.count || !how.may_have_arrived(cx, first);
        let arrives_once = message.reliability.has_channel() || old.queue.front().is_some_and(is_new);
        if is_whole && arrives_once && self.replace(cx, how, &old, QueueId::Resend) {
            return true;
        }
        let (mut rest, mut index, mut are_short) = (core::mem::take(lost), 0, true);
        while let Some(part) = old.queue.pop(cx.pool) {
            // One that was not sent gets its number, since it no longer waits behind others.
            if index >= old.sent {
                self.number_part(cx, part);
            }
            index += 1;
            are_short &= !how.is_too_long(cx, part);
            self.put_back(cx, QueueId::Resend, part);
        }
        while let Some(part) = rest.pop(cx.pool) {
            if outgoing(cx, part).is_some_and(|message| message.split_id() == id) {
                are_short &= !how.is_too_long(cx, part);
                self.put_back(cx, QueueId::Resend, part);
            } else {
                lost.push(cx.pool, part);
            }
        }
        are_short
    }

    fn number_part(&mut self, cx: &mut Context<'_, '_>, part: Block) {
        let number = self.take_reliable_number();
        if let BlockHeader::Outgoing(message, status) = cx.pool.header_mut(part) {
            (message.reliable, *status) = (number, SendStatus::RESEND);
        }
    }

    /// Takes a part of a message of which others were sent: it is the next one of its priority.
    fn take_new_part(&mut self, cx: &mut Context<'_, '_>, id: u16, index: u32) -> BlockLink {
        let queue = CLASSES
            .into_iter()
            .find(|class| self.queue(*class).front().is_some_and(|front| is_part(cx, front, id, index)))?;
        self.pop(cx, QueueId::New(queue))
    }

    /// Cuts messages again of which nothing was sent.
    fn recut_new(&mut self, cx: &mut Context<'_, '_>, how: Recut<'_>, to: QueueId) {
        let QueueId::New(class) = to else { return };
        let mut waiting = core::mem::take(self.queue(class));
        while let Some(first) = waiting.pop(cx.pool) {
            let Some(message) = outgoing(cx, first) else { return };
            let is_cut = message.split_index() == 0 && how.is_too_long(cx, first);
            let mut old = Parts::default();
            old.push(cx, first, false);
            for index in 1..if is_cut { message.split_count() } else { 0 } {
                let next = waiting.front().filter(|next| is_part(cx, *next, message.split_id(), index));
                let Some(_) = next else { break };
                let Some(part) = waiting.pop(cx.pool) else { break };
                old.push(cx, part, false);
            }
            let mut counted = old.queue.front();
            while let Some(part) = counted {
                self.count_out(to, cx.pool.size(part));
                counted = cx.pool.after(part);
            }
            if is_cut && self.replace(cx, how, &old, to) {
                continue;
            }
            while let Some(part) = old.queue.pop(cx.pool) {
                self.put_back(cx, to, part);
            }
        }
    }

    fn put_back(&mut self, cx: &mut Context<'_, '_>, to: QueueId, message: Block) {
        self.count_in(to, cx.pool.size(message));
        match to {
            QueueId::Resend => self.resend.push(cx.pool, message),
            QueueId::New(class) => self.queue(class).push(cx.pool, message),
        }
    }

    /// Puts other parts in place of all those of a message, at the end of a queue; false, and nothing done, if there is no room.
    fn replace(&mut self, cx: &mut Context<'_, '_>, how: Recut<'_>, old: &Parts, to: QueueId) -> bool {
        let Some(first) = old.queue.front() else { return false };
        let BlockHeader::Outgoing(mut message, status) = *cx.pool.header(first) else { return false };
        let (size, outside) = (part_size(old.bytes, how.sizes), cx.pool.outside(first));
        let count = old.bytes.div_ceil(size);
        let of_parts = if outside.is_some() { count } else { Self::blocks_for(cx, old.bytes, size) };
        let is_recorded = !message.is_split() && (message.receipt != 0 || cx.config.progress_interval > 0);
        let used = of_parts + old.sent + usize::from(is_recorded);
        // Copies take the blocks of what was copied, except for the part that is being copied, and one that begins. What stands
        // outside is released with its last part.
        let two_parts = 2 * cx.pool.blocks_for(MAX_MTU.into());
        let extra = if outside.is_some() { used } else { (used + two_parts).saturating_sub(old.blocks) };
        if cx.pool.shares.charge(&mut self.share, extra, Claim::Control).is_err() {
            return false;
        }
        let replaced_id = message.is_split().then_some(message.split_id());
        message.reliability = message.reliability.on_wire(true);
        message.split(u32::try_from(count).unwrap_or(u32::MAX), self.splits.take_id());
        match replaced_id {
            Some(id) => renew(cx, id, &message),
            None if is_recorded => self.splits.insert(cx, &message),
            None => {}
        }
        let mut new = NewParts { message, status, to, size, queue: Queue::default() };
        if let Some(id) = outside {
            self.cut_outside(cx, &mut new, id, old.bytes);
        }
        self.cut_copies(cx, how, &mut new, old, outside.is_none());
        self.give_back(cx, (old.blocks + extra).saturating_sub(used));
        while let Some(part) = new.queue.pop(cx.pool) {
            self.put_back(cx, to, part);
        }
        true
    }

    /// Refers to the same bytes outside by shorter parts.
    fn cut_outside(&mut self, cx: &mut Context<'_, '_>, new: &mut NewParts, id: OutsideId, bytes: usize) {
        let mut left = bytes;
        while left > 0 {
            let length = left.min(new.size);
            left -= length;
            let header = self.next_header(new);
            // The room was charged for all parts at once.
            let Some(block) = cx.pool.store_outside(id, length, &header) else { return };
            new.queue.push(cx.pool, block);
        }
    }

    /// Frees the old parts, after their bytes were copied into new ones, and puts a ping in place of each that was sent.
    fn cut_copies(
        &mut self,
        cx: &mut Context<'_, '_>,
        how: Recut<'_>,
        new: &mut NewParts,
        old: &Parts,
        is_copied: bool,
    ) {
        let (mut old, mut buffer, mut filled) = (*old, [0; MAX_MTU as usize], 0);
        while let Some(part) = old.queue.pop(cx.pool) {
            let mut at = Some(part).filter(|_| is_copied);
            while let Some(block) = at {
                let mut done = 0;
                while let Some(bytes) = cx.pool.bytes(block).get(done..).filter(|bytes| !bytes.is_empty()) {
                    let length = bytes.len().min(new.size.saturating_sub(filled));
                    let target = buffer.get_mut(filled..).and_then(|rest| rest.get_mut(..length));
                    let (Some(target), Some(bytes)) = (target, bytes.get(..length)) else { return };
                    target.copy_from_slice(bytes);
                    (done, filled) = (done + length, filled + length);
                    if filled == new.size {
                        self.store_part(cx, new, &buffer, filled);
                        filled = 0;
                    }
                }
                at = cx.pool.next(block);
            }
            let number = outgoing(cx, part).map(|message| message.reliable);
            cx.pool.free(part);
            if let Some(number) = number.filter(|_| old.sent > 0) {
                old.sent -= 1;
                self.put_ping(cx, how, number);
            }
        }
        if filled > 0 {
            self.store_part(cx, new, &buffer, filled);
        }
    }

    fn store_part(&mut self, cx: &mut Context<'_, '_>, new: &mut NewParts, buffer: &[u8], length: usize) {
        let header = self.next_header(new);
        // The room was charged for all parts at once.
        let stored = buffer.get(..length).and_then(|bytes| cx.pool.store(bytes, &header));
        if let Some(block) = stored {
            new.queue.push(cx.pool, block);
        }
    }

    /// That of the next new part, with a number if others of its message were sent before.
    fn next_header(&mut self, new: &mut NewParts) -> BlockHeader {
        let mut message = new.message;
        new.message.advance_part();
        if new.to == QueueId::Resend {
            (message.reliable, new.status) = (self.take_reliable_number(), SendStatus::RESEND);
        }
        BlockHeader::Outgoing(message, new.status)
    }

    fn put_ping(&mut self, cx: &mut Context<'_, '_>, how: Recut<'_>, number: U24) {
        // Its block was charged with those of the new parts.
        if let Some(block) = store_ping(cx, how.ping, Reliability::Reliable, number) {
            self.put_back(cx, QueueId::Resend, block);
        }
    }
}

/// Takes this part out of a queue in which those of a message stand about in order.
fn take_part(cx: &mut Context<'_, '_>, queue: &mut Queue, id: u16, index: u32) -> BlockLink {
    let (mut passed, mut found) = (Queue::default(), None);
    while let Some(part) = queue.pop(cx.pool) {
        if is_part(cx, part, id, index) {
            found = Some(part);
            break;
        }
        passed.push(cx.pool, part);
    }
    passed.append(cx.pool, *queue);
    *queue = passed;
    found
}

fn outgoing(cx: &Context<'_, '_>, message: Block) -> Option<OutgoingMessage> {
    cx.pool.header(message).outgoing().copied()
}

fn is_part(cx: &Context<'_, '_>, message: Block, id: u16, index: u32) -> bool {
    outgoing(cx, message).is_some_and(|message| {
        message.is_split() && message.split_id() == id && message.split_index() == index
    })
}
