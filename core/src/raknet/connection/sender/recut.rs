//! Splits messages again into smaller parts, after the path MTU was reduced (docs/raknet.md#path-mtu).
//!
//! A receiver counts the parts of a message, and may expect all parts but the last to have the same length. A single
//! part therefore cannot be split. A message without an acknowledged part, however, is still complete at the sender,
//! which splits it again under another split id. The reliable numbers of the old parts were already used, and a
//! receiver waits for every number. Each number is therefore reused for a ping, which the receiver drops as a duplicate
//! if the part has arrived after all.

use super::queue::{QueueId, SendQueue, part_size, renew, store_ping};
use super::scheduling::CLASSES;
use crate::cursor::Writer;
use crate::raknet::connection::block_header::{BlockHeader, Context, OutgoingMessage, SendStatus};
use crate::raknet::delivery::{Priority, Reliability};
use crate::raknet::wire::MAX_MTU;
use crate::raknet::wire::control::Control;
use crate::raknet::wire::datagram::{DATA_HEADER, Sizes};
use crate::serial::U24;
use crate::storage::{Block, OwnedId, Purpose, Queue};

/// The parameters for splitting messages again.
#[derive(Clone, Copy)]
pub(super) struct Recut<'c> {
    pub(super) sizes: Sizes,
    /// The ping that reuses the number of a part that was sent.
    pub(super) ping: &'c Control<'c>,
    /// The size of the longest datagram acknowledged so far, in bytes.
    ///
    /// If all parts of a message fit into datagrams of this size, they may have been received, and only the
    /// acknowledgements lost. Splitting such a message again could deliver it twice if it is neither ordered nor
    /// sequenced.
    pub(super) longest_arrived: usize,
}

/// The result of splitting messages again. For several messages it is the greatest result in the order of declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fit {
    All,
    /// There is no memory for the new parts of a message.
    LacksMemory,
    /// A message keeps its parts: they are too long, and may have been received.
    Never,
}

/// The parts of one message in order. The first `sent` parts were sent.
#[derive(Clone, Copy, Default)]
struct Parts {
    queue: Queue,
    count: usize,
    sent: usize,
    bytes: usize,
    blocks: usize,
}

impl Parts {
    /// Returns true if `part` is the next part of the message with the split id `id`.
    fn continues_with(&self, cx: &Context<'_, '_>, part: Block, id: u16) -> bool {
        is_of(cx, part, id)
            && outgoing(cx, part).map(|part| part.split_index()) == u32::try_from(self.count).ok()
    }

    fn push(&mut self, cx: &mut Context<'_, '_>, part: Block, is_sent: bool) {
        let bytes = cx.pool.size(part);
        self.blocks += if cx.pool.is_owned(part) { 1 } else { cx.pool.blocks_for(bytes) };
        self.bytes += bytes;
        self.count += 1;
        self.sent += usize::from(is_sent);
        self.queue.push(cx.pool, part);
    }
}

/// The parts that replace the old ones.
struct NewParts {
    /// The header of the next part.
    message: OutgoingMessage,
    status: SendStatus,
    to: QueueId,
    size: usize,
    queue: Queue,
}

impl Recut<'_> {
    /// Returns true if a message or part exceeds the path MTU.
    fn is_too_long(&self, cx: &Context<'_, '_>, message: Block) -> bool {
        datagram_bytes(cx, message) > self.sizes.data_datagram()
    }

    /// Returns true if a part of the length of `part` may have been received.
    fn may_have_arrived(&self, cx: &Context<'_, '_>, part: Block) -> bool {
        datagram_bytes(cx, part) <= self.longest_arrived
    }
}

impl SendQueue {
    /// Splits queued and lost messages again.
    #[cold]
    #[inline(never)]
    pub(super) fn recut(&mut self, cx: &mut Context<'_, '_>, how: Recut<'_>) -> Fit {
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
        // Sorted by age, because the remote peer could control the order in which parts are declared lost.
        let place = |header: &BlockHeader| {
            header.outgoing().map(|message| (self.splits.place(message.split_id()), message.split_index()))
        };
        lost.sort(cx.pool, |left, right| place(left) < place(right));
        let mut fit = Fit::All;
        while let Some(message) = lost.front().and_then(|front| outgoing(cx, front)) {
            fit = fit.max(self.recut_lost(cx, how, &mut lost, message));
        }
        for &class in CLASSES {
            self.recut_new(cx, how, QueueId::New(class));
        }
        fit
    }

    /// Splits the message of the first lost parts again, or leaves its parts unchanged.
    fn recut_lost(
        &mut self,
        cx: &mut Context<'_, '_>,
        how: Recut<'_>,
        lost: &mut Queue,
        message: OutgoingMessage,
    ) -> Fit {
        let (id, mut old, mut is_whole) = (message.split_id(), Parts::default(), true);
        while let Some(part) = lost.front().filter(|part| is_of(cx, *part, id)) {
            lost.pop(cx.pool);
            is_whole &= old.continues_with(cx, part, id);
            old.push(cx, part, true);
        }
        let class = if is_whole { self.take_new_parts(cx, id, &mut old) } else { None };
        is_whole &= u32::try_from(old.count) == Ok(message.split_count());
        let is_new = |first| old.sent < old.count || !how.may_have_arrived(cx, first);
        let arrives_once = message.reliability.has_channel() || old.queue.front().is_some_and(is_new);
        let mut fit = Fit::Never;
        if is_whole && arrives_once {
            fit = self.replace(cx, how, &old, QueueId::Resend);
            if fit == Fit::All {
                return fit;
            }
        }
        let (mut new, mut are_short) = (Queue::default(), true);
        while let Some(part) = old.queue.pop(cx.pool) {
            are_short &= !how.is_too_long(cx, part);
            if let (0, Some(class)) = (old.sent, class) {
                self.count_in(QueueId::New(class), cx.pool.size(part));
                new.push(cx.pool, part);
            } else {
                old.sent -= 1;
                self.put_back(cx, QueueId::Resend, part);
            }
        }
        if let Some(class) = class {
            let queue = self.queue(class);
            new.append(cx.pool, *queue);
            *queue = new;
        }
        if are_short { Fit::All } else { fit }
    }

    /// Removes a message's unsent parts from the front of their priority queue, and returns their priority. Returns
    /// `None` if they are not at the front of any queue.
    fn take_new_parts(&mut self, cx: &mut Context<'_, '_>, id: u16, old: &mut Parts) -> Option<Priority> {
        let mut next = |class| self.queue(class).front();
        let class = CLASSES
            .iter()
            .copied()
            .find(|class| next(*class).is_some_and(|front| old.continues_with(cx, front, id)))?;
        while let Some(part) = self.queue(class).front().filter(|part| old.continues_with(cx, *part, id)) {
            self.queue(class).pop(cx.pool);
            self.count_out(QueueId::New(class), cx.pool.size(part));
            old.push(cx, part, false);
        }
        Some(class)
    }

    /// Splits the messages without sent parts again.
    fn recut_new(&mut self, cx: &mut Context<'_, '_>, how: Recut<'_>, to: QueueId) {
        let QueueId::New(class) = to else { return };
        let mut waiting = core::mem::take(self.queue(class));
        while let Some(first) = waiting.pop(cx.pool) {
            let Some(message) = outgoing(cx, first) else { return };
            let is_cut = message.split_index() == 0 && how.is_too_long(cx, first);
            let mut old = Parts::default();
            old.push(cx, first, false);
            for _ in 1..if is_cut { message.split_count() } else { 0 } {
                let next = waiting.front().filter(|next| old.continues_with(cx, *next, message.split_id()));
                let Some(part) = next else { break };
                waiting.pop(cx.pool);
                old.push(cx, part, false);
            }
            let mut counted = old.queue.front();
            while let Some(part) = counted {
                self.count_out(to, cx.pool.size(part));
                counted = cx.pool.after(part);
            }
            if is_cut && self.replace(cx, how, &old, to) == Fit::All {
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

    /// Replaces all parts of a message with new parts at the end of a queue; does nothing if there is no memory.
    fn replace(&mut self, cx: &mut Context<'_, '_>, how: Recut<'_>, old: &Parts, to: QueueId) -> Fit {
        let (Some(first), Some(last)) = (old.queue.front(), old.queue.back()) else { return Fit::Never };
        let BlockHeader::Outgoing(mut message, status) = *cx.pool.header(first) else { return Fit::Never };
        let (size, owned) = (part_size(old.bytes, how.sizes), cx.pool.owned(first));
        let count = old.bytes.div_ceil(size);
        let of_parts = if owned.is_some() { count } else { Self::blocks_for(cx, old.bytes, size) };
        let is_recorded = !message.is_split() && (message.receipt != 0 || cx.config.progress_interval > 0);
        let used = of_parts + old.sent + usize::from(is_recorded);
        // Copies reuse the blocks of the old parts, except for the part being copied and the part being written. A
        // vector is freed with its last part.
        let two_parts = 2 * cx.pool.blocks_for(MAX_MTU.into());
        let extra = if owned.is_some() { used } else { (used + two_parts).saturating_sub(old.blocks) };
        if cx.pool.shares.charge(&mut self.share, extra, Purpose::Control).is_err() {
            let fits = cx.pool.shares.could_hold(&self.share, old.blocks + extra, 0, Purpose::Control);
            return if fits { Fit::LacksMemory } else { Fit::Never };
        }
        if to == QueueId::Resend && old.sent < old.count {
            self.advance_channel(cx, last);
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
        if let Some(id) = owned {
            self.cut_owned(cx, &mut new, id, old.bytes);
        }
        self.cut_copies(cx, how, &mut new, old, owned.is_none());
        self.release(cx, (old.blocks + extra).saturating_sub(used));
        while let Some(part) = new.queue.pop(cx.pool) {
            self.put_back(cx, to, part);
        }
        Fit::All
    }

    /// Creates shorter parts that refer to the same vector.
    fn cut_owned(&mut self, cx: &mut Context<'_, '_>, new: &mut NewParts, id: OwnedId, bytes: usize) {
        let mut left = bytes;
        while left > 0 {
            let length = left.min(new.size);
            left -= length;
            let header = self.next_header(new);
            // Cannot fail: the blocks were charged for all parts at once.
            let Some(block) = cx.pool.store_owned(id, length, &header) else { return };
            new.queue.push(cx.pool, block);
        }
    }

    /// Copies the old parts into new ones. In place of each old part that was sent, it queues a ping.
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
        // Cannot fail: the blocks were charged for all parts at once.
        let stored = buffer.get(..length).and_then(|bytes| cx.pool.store(bytes, &header));
        if let Some(block) = stored {
            new.queue.push(cx.pool, block);
        }
    }

    /// Returns the header of the next new part, with a reliable number if parts of its message were sent before.
    fn next_header(&mut self, new: &mut NewParts) -> BlockHeader {
        let mut message = new.message;
        new.message.advance_part();
        if new.to == QueueId::Resend {
            (message.reliable, new.status) = (self.take_reliable_number(), SendStatus::RESEND);
        }
        BlockHeader::Outgoing(message, new.status)
    }

    fn put_ping(&mut self, cx: &mut Context<'_, '_>, how: Recut<'_>, number: U24) {
        // The block of the ping was charged together with the blocks of the new parts.
        if let Some(block) = store_ping(cx, how.ping, Reliability::Reliable, number) {
            self.put_back(cx, QueueId::Resend, block);
        }
    }

    /// Splits the first lost message for a smaller MTU.
    ///
    /// Returns false if the message is already a part, or if there is no memory. The first part keeps the reliable
    /// number of the message, so the message is not delivered twice if it has been received after all.
    #[cold]
    #[inline(never)]
    pub(super) fn cut_lost(&mut self, cx: &mut Context<'_, '_>, sizes: Sizes) -> bool {
        let Some(whole) = self.resend.front() else { return false };
        let Some(&(mut message)) = cx.pool.header(whole).outgoing() else { return false };
        if message.is_split() || cx.pool.is_owned(whole) {
            return false;
        }
        let mut buffer = [0; MAX_MTU as usize];
        let mut writer = Writer::new(&mut buffer);
        let mut at = Some(whole);
        while let Some(block) = at {
            if writer.bytes(cx.pool.bytes(block)).is_err() {
                return false;
            }
            at = cx.pool.next(block);
        }
        let bytes = writer.finish();
        let part_size = part_size(bytes.len(), sizes);
        let is_recorded = message.receipt != 0 || cx.config.progress_interval > 0;
        let blocks = Self::blocks_for(cx, bytes.len(), part_size) + usize::from(is_recorded);
        if cx.pool.shares.charge(&mut self.share, blocks, Purpose::Control).is_err() {
            return false;
        }
        let count = bytes.len().div_ceil(part_size);
        message.split(u32::try_from(count).unwrap_or(u32::MAX), self.splits.take_id());
        self.pop(cx, QueueId::Resend);
        self.free(cx, whole);
        if is_recorded {
            self.splits.insert(cx, &message);
        }
        for part in bytes.chunks(part_size) {
            if message.split_index() > 0 {
                message.reliable = self.take_reliable_number();
            }
            // Cannot fail: the blocks were charged for all parts at once.
            let header = BlockHeader::Outgoing(message, SendStatus::RESEND);
            let Some(block) = cx.pool.store(part, &header) else { break };
            self.push_resend(cx, block);
            message.advance_part();
        }
        true
    }
}

fn outgoing(cx: &Context<'_, '_>, message: Block) -> Option<OutgoingMessage> {
    cx.pool.header(message).outgoing().copied()
}

/// Returns true if `part` is a part of the message with the split id `id`.
fn is_of(cx: &Context<'_, '_>, part: Block, id: u16) -> bool {
    outgoing(cx, part).is_some_and(|part| part.is_split() && part.split_id() == id)
}

/// Returns the size in bytes of a datagram with only this message.
fn datagram_bytes(cx: &Context<'_, '_>, message: Block) -> usize {
    let header = outgoing(cx, message).map_or(0, |message| message.header_size());
    DATA_HEADER + header + cx.pool.size(message)
}
