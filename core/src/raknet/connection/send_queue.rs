//! Messages that wait to be sent: splitting, numbering, priorities (supplement 4.9 to 4.11).

use super::block_header::{BlockHeader, Role, key};
use super::blocked_receiver::SendSource;
use super::channels::{Channels, Packed, pack, unpack};
use super::sizes::Sizes;
use super::{Context, SendError};
use crate::raknet::delivery::{Delivery, Parts, Priority};
use crate::raknet::event::{Direction, Outcome, Progress, Receipt};
use crate::raknet::stats::Waiting;
use crate::serial::U24;
use crate::storage::{Block, Link, List, Purpose, Queue};

/// The first virtual_time of each priority and the step from one of its messages to the next: under load the shares are
/// about 35 : 7 : 2.5 : 1.
const VIRTUAL_START: [u32; Priority::COUNT] = [0, 3, 10, 27];
const VIRTUAL_STEP: [u32; Priority::COUNT] = [1, 5, 14, 35];

/// The next indices of a channel.
#[derive(Clone, Copy, Debug, Default)]
struct Outgoing {
    order: U24,
    sequence: U24,
    /// The ordered message that leaves first: those behind it would only wait for it at the other end.
    leaving: U24,
}

impl Packed for Outgoing {
    const BYTES: usize = 12;

    fn pack(&self, bytes: &mut [u8]) {
        pack([self.order.get(), self.sequence.get(), self.leaving.get()], bytes);
    }

    fn unpack(bytes: &[u8]) -> Self {
        let [order, sequence, leaving] = unpack(bytes).map(U24::new);
        Self { order, sequence, leaving }
    }
}

/// Messages that wait, and the numbers that they get.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SendQueue {
    /// What was lost goes before what is new.
    resend: Queue,
    waiting: [Queue; Priority::COUNT],
    /// How much stands in `waiting` and, last, in `resend`.
    amounts: [Waiting; Priority::COUNT + 1],
    next_virtual_time: [u32; Priority::COUNT],
    channels: Channels<Outgoing>,
    next_reliable: U24,
    next_split: u16,
    next_receipt: u32,
    /// Blocks that wait or are in flight.
    blocks: u32,
    /// Records of messages that are sent in parts and whose fate somebody wants to know.
    sending: List,
    /// Receipts for the application, and how many.
    settled: Queue,
    settled_count: u32,
    progress: Option<Progress>,
}

/// Which way a capsule goes.
#[derive(Clone, Copy)]
enum Change {
    In,
    Out,
}

/// Which queue the next message stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QueueId {
    Resend,
    New(Priority),
}

impl SendQueue {
    pub(super) fn new() -> Self {
        Self { next_virtual_time: VIRTUAL_START, ..Self::default() }
    }

    pub(super) fn starting_at(reliable: U24) -> Self {
        Self { next_reliable: reliable, ..Self::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.resend.is_empty() && self.waiting.iter().all(Queue::is_empty)
    }

    pub(super) const fn waiting_new(&self) -> [Waiting; Priority::COUNT] {
        let [immediate, high, medium, low, _] = self.amounts;
        [immediate, high, medium, low]
    }

    pub(super) const fn waiting_resends(&self) -> Waiting {
        let [.., resends] = self.amounts;
        resends
    }

    /// Counts a capsule of `bytes` in or out.
    fn count(&mut self, place: usize, bytes: usize, change: Change) {
        let Some(amount) = self.amounts.get_mut(place) else { return };
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        *amount = match change {
            Change::In => {
                Waiting { messages: amount.messages + 1, bytes: amount.bytes.saturating_add(bytes) }
            }
            Change::Out => Waiting {
                messages: amount.messages.saturating_sub(1),
                bytes: amount.bytes.saturating_sub(bytes),
            },
        };
    }

    pub(super) const fn has_resends(&self) -> bool {
        !self.resend.is_empty()
    }

    /// Copies a message into the pool, in parts if it does not fit one capsule.
    pub(super) fn push(
        &mut self,
        cx: &mut Context<'_, '_>,
        sizes: Sizes,
        payload: &[u8],
        delivery: Delivery,
        purpose: Purpose,
    ) -> Result<Option<Receipt>, SendError> {
        // Never zero, which the compiler cannot know: so no division by it can panic.
        let part_size = sizes.part().max(1);
        let count = if payload.len() <= part_size { 1 } else { payload.len().div_ceil(part_size) };
        let parts = if count > 1 { Parts::Many } else { Parts::One };
        let record =
            parts == Parts::Many && (delivery.reliability.has_receipt() || cx.config.progress_interval > 0);
        let blocks = Self::blocks_for(cx, payload.len(), part_size) + usize::from(record);
        self.admit(cx, payload.len(), blocks, delivery, purpose)?;
        let mut header = self.number(cx, delivery, parts);
        if parts == Parts::Many {
            header.split_count = u32::try_from(count).unwrap_or(u32::MAX);
            header.split_id = self.next_split;
            self.next_split = self.next_split.wrapping_add(1);
        }
        if record {
            self.record(cx, &header, purpose);
        }
        for part in payload.chunks(part_size) {
            header.virtual_time = self.virtual_time(cx, delivery.priority);
            // The room was checked for all parts at once.
            let Some(message) = cx.pool.store(part, purpose, &header) else { break };
            self.queue(delivery.priority).push(cx.pool, message);
            self.count(delivery.priority.index(), part.len(), Change::In);
            header.split_index += 1;
        }
        self.blocks += u32::try_from(blocks).unwrap_or(u32::MAX);
        Ok((header.receipt != 0).then_some(Receipt(header.receipt)))
    }

    /// Keeps a record of a message in parts until all are acknowledged.
    fn record(&mut self, cx: &mut Context<'_, '_>, header: &BlockHeader, purpose: Purpose) {
        let header = BlockHeader { role: Role::Sending, ..*header };
        let Some(record) = cx.pool.store(&[], purpose, &header) else { return };
        cx.index.insert(cx.pool, key::sending(cx.slot, header.split_id), record);
        self.sending.push(cx.pool, record);
    }

    /// How many blocks the parts of a message take.
    fn blocks_for(cx: &Context<'_, '_>, bytes: usize, part: usize) -> usize {
        let part = part.max(1);
        if bytes <= part {
            return cx.pool.blocks_for(bytes);
        }
        let last = (bytes % part).div_ceil(cx.pool.block_size());
        bytes / part * cx.pool.blocks_for(part) + last
    }

    /// Makes sure that there is room for a message, and for the state of its channel.
    fn admit(
        &mut self,
        cx: &mut Context<'_, '_>,
        bytes: usize,
        blocks: usize,
        delivery: Delivery,
        purpose: Purpose,
    ) -> Result<(), SendError> {
        if bytes == 0 {
            return Err(SendError::Empty);
        }
        if purpose == Purpose::Send {
            if blocks > cx.send_quota {
                return Err(SendError::TooLong);
            }
            if self.blocks as usize + blocks > cx.send_quota {
                return Err(SendError::QuotaExceeded);
            }
        }
        let channel = delivery.channel.number();
        let has_channel = delivery.reliability.has_channel();
        let missing = if has_channel { self.channels.missing_blocks(cx.pool, channel) } else { 0 };
        if blocks + missing > cx.pool.room(purpose) {
            return Err(if blocks + missing > cx.pool.most(purpose) {
                SendError::TooLong
            } else {
                SendError::PoolExhausted
            });
        }
        if missing > 0 && !self.channels.prepare(cx.pool, channel, purpose) {
            return Err(SendError::PoolExhausted);
        }
        Ok(())
    }

    /// Gives a message its place in its channel. Priorities may change the order of sending, never this one.
    fn number(&mut self, cx: &mut Context<'_, '_>, delivery: Delivery, parts: Parts) -> BlockHeader {
        let receipt = if delivery.reliability.has_receipt() { self.take_receipt() } else { 0 };
        let mut header = BlockHeader {
            owner: cx.slot,
            reliability: delivery.reliability.on_wire(parts),
            since: cx.now,
            receipt,
            ..BlockHeader::default()
        };
        if !delivery.reliability.has_channel() {
            return header;
        }
        header.channel = delivery.channel.number();
        self.channels.update(cx.pool, header.channel, |channel, _| {
            header.order = channel.order;
            if delivery.reliability.is_sequenced() {
                header.sequence = channel.sequence;
                channel.sequence = channel.sequence.next();
            } else {
                channel.order = channel.order.next();
                channel.sequence = U24::new(0);
            }
        });
        header
    }

    fn queue(&mut self, priority: Priority) -> &mut Queue {
        let [immediate, high, medium, low] = &mut self.waiting;
        match priority {
            Priority::Immediate => immediate,
            Priority::High => high,
            Priority::Medium => medium,
            Priority::Low => low,
        }
    }

    /// The virtual_time of the next message of a priority. The lowest virtual_time goes first.
    fn virtual_time(&mut self, cx: &Context<'_, '_>, priority: Priority) -> u32 {
        let head = self.earliest(cx, |_| true);
        let base = VIRTUAL_START.get(priority.index()).copied().unwrap_or(0);
        let step = VIRTUAL_STEP.get(priority.index()).copied().unwrap_or(0);
        let Some(next) = self.next_virtual_time.get_mut(priority.index()) else {
            return 0;
        };
        let mut virtual_time = *next;
        match head {
            None => virtual_time = base,
            Some((head_priority, message)) => {
                let p = u32::try_from(head_priority.index()).unwrap_or(0);
                let least = cx.pool.header(message).virtual_time.wrapping_sub(p << p).wrapping_add(p);
                if is_earlier(virtual_time, least) {
                    virtual_time = least.wrapping_add(base);
                }
            }
        }
        *next = virtual_time.wrapping_add(step);
        virtual_time
    }

    /// The first message of the lowest virtual_time among those that `may` go.
    fn earliest(
        &self,
        cx: &Context<'_, '_>,
        may: impl Fn(&BlockHeader) -> bool,
    ) -> Option<(Priority, Block)> {
        let [immediate, high, medium, low] = &self.waiting;
        let mut best: Option<(Priority, Block, u32)> = None;
        let mut consider = |priority, queue: &Queue| {
            let Some(message) = queue.front() else { return };
            let header = cx.pool.header(message);
            if best.is_none_or(|(_, _, least)| is_earlier(header.virtual_time, least)) && may(header) {
                best = Some((priority, message, header.virtual_time));
            }
        };
        consider(Priority::Immediate, immediate);
        consider(Priority::High, high);
        consider(Priority::Medium, medium);
        consider(Priority::Low, low);
        best.map(|(priority, message, _)| (priority, message))
    }

    /// Whether everything before a message on its channel has left. A message never overtakes those that it would have
    /// to wait for at the other end: it would only take the room that they need. The message that was queued first
    /// always may leave, so there is always one.
    fn may_leave(&self, cx: &Context<'_, '_>, header: &BlockHeader) -> bool {
        let leaving = || self.channels.get(cx.pool, header.channel).leaving;
        !header.has_place() || !header.order.is_newer_than(leaving())
    }

    /// The message whose turn it is on this source.
    pub(super) fn next(&self, cx: &Context<'_, '_>, source: SendSource) -> Option<(QueueId, Block)> {
        let resend = || self.resend.front().map(|message| (QueueId::Resend, message));
        match source {
            SendSource::Usual => resend().or_else(|| {
                let (priority, message) = self.earliest(cx, |header| self.may_leave(cx, header))?;
                Some((QueueId::New(priority), message))
            }),
            SendSource::OldestLost | SendSource::PartlyDelivered | SendSource::NewestLost => resend(),
            SendSource::New(priority) => {
                let message = self.waiting.get(priority.index())?.front()?;
                self.may_leave(cx, cx.pool.header(message)).then_some((QueueId::New(priority), message))
            }
        }
    }

    /// Takes the message that [`next`](Self::next) named.
    pub(super) fn pop(&mut self, cx: &mut Context<'_, '_>, id: QueueId) -> Link {
        let (message, place) = match id {
            QueueId::Resend => (self.resend.pop(cx.pool)?, Priority::COUNT),
            QueueId::New(priority) => (self.queue(priority).pop(cx.pool)?, priority.index()),
        };
        self.count(place, cx.pool.size(message), Change::Out);
        if id != QueueId::Resend {
            self.pass(cx, message);
        }
        Some(message)
    }

    /// Remembers that a message leaves, after which the next one on its channel may.
    fn pass(&mut self, cx: &mut Context<'_, '_>, message: Block) {
        let header = cx.pool.header(message);
        let is_last = header.split_count <= header.split_index + 1;
        if !is_last || !header.has_place() || header.reliability.is_sequenced() {
            return;
        }
        let (number, leaving) = (header.channel, header.order.next());
        self.channels.update(cx.pool, number, |channel, _| channel.leaving = leaving);
    }

    /// A reliable message gets its number when it is sent first, so priorities leave no gaps.
    pub(super) const fn take_reliable_number(&mut self) -> U24 {
        let number = self.next_reliable;
        self.next_reliable = number.next();
        number
    }

    /// Receipts count from 1; zero is none.
    const fn take_receipt(&mut self) -> u32 {
        self.next_receipt = self.next_receipt.wrapping_add(1);
        if self.next_receipt == 0 {
            self.next_receipt = 1;
        }
        self.next_receipt
    }

    /// Queues what was lost, in the order it was sent, behind what was lost before. What was sent unreliably stays lost.
    pub(super) fn push_resend(&mut self, cx: &mut Context<'_, '_>, message: Block) {
        if !cx.pool.header(message).reliability.is_reliable() {
            self.settle(cx, message, Outcome::Lost);
            return;
        }
        self.resend.push(cx.pool, message);
        self.count(Priority::COUNT, cx.pool.size(message), Change::In);
    }

    /// It is known what became of a message, or of a part of one.
    pub(super) fn settle(&mut self, cx: &mut Context<'_, '_>, message: Block, outcome: Outcome) {
        let header = cx.pool.header(message);
        if header.split_count > 0 {
            let split_id = header.split_id;
            self.free(cx, message);
            self.settle_part(cx, split_id);
        } else if header.receipt != 0 {
            let freed = cx.pool.truncate(message);
            self.give_back(freed);
            self.tell(cx, message, outcome);
        } else {
            self.free(cx, message);
        }
    }

    /// A part of a message was acknowledged.
    fn settle_part(&mut self, cx: &mut Context<'_, '_>, split_id: u16) {
        let owner = cx.slot;
        let is_it = |header: &BlockHeader| {
            header.role == Role::Sending && header.owner == owner && header.split_id == split_id
        };
        let Some(record) = cx.index.find(cx.pool, key::sending(owner, split_id), is_it) else { return };
        let header = cx.pool.header_mut(record);
        header.count += 1;
        let (done, parts, receipt) = (header.count, header.split_count, header.receipt);
        if done.checked_rem(cx.config.progress_interval) == Some(0) {
            self.progress = Some(Progress { direction: Direction::Sending, message: split_id, done, parts });
        }
        if done < parts {
            return;
        }
        cx.index.remove(cx.pool, key::sending(owner, split_id), record);
        self.sending.remove(cx.pool, record);
        if receipt == 0 {
            self.free(cx, record);
        } else {
            self.tell(cx, record, Outcome::Acknowledged);
        }
    }

    /// Makes a receipt for the application out of what is left of a message.
    fn tell(&mut self, cx: &mut Context<'_, '_>, message: Block, outcome: Outcome) {
        let header = cx.pool.header_mut(message);
        header.role = Role::Receipt;
        header.outcome = outcome;
        self.settled.push(cx.pool, message);
        self.settled_count += 1;
    }

    /// Takes the receipts for the application, one block each.
    pub(super) fn take_settled(&mut self) -> (Queue, usize) {
        let count = core::mem::take(&mut self.settled_count) as usize;
        self.give_back(count);
        (core::mem::take(&mut self.settled), count)
    }

    /// Takes the news of a message that is being sent.
    pub(super) const fn take_progress(&mut self) -> Option<Progress> {
        self.progress.take()
    }

    pub(super) const fn has_progress(&self) -> bool {
        self.progress.is_some()
    }

    /// Gives a message back to the pool.
    pub(super) fn free(&mut self, cx: &mut Context<'_, '_>, message: Block) {
        let freed = cx.pool.free(message);
        self.give_back(freed);
    }

    fn give_back(&mut self, blocks: usize) {
        self.blocks = self.blocks.saturating_sub(u32::try_from(blocks).unwrap_or(u32::MAX));
    }

    /// Gives everything that waits back to the pool.
    pub(super) fn clear(&mut self, cx: &mut Context<'_, '_>) {
        let mut freed = self.resend.free_all(cx.pool) + self.settled.free_all(cx.pool);
        self.channels.clear(cx.pool);
        for queue in &mut self.waiting {
            freed += queue.free_all(cx.pool);
        }
        while let Some(record) = self.sending.oldest() {
            let split_id = cx.pool.header(record).split_id;
            cx.index.remove(cx.pool, key::sending(cx.slot, split_id), record);
            self.sending.remove(cx.pool, record);
            freed += cx.pool.free(record);
        }
        self.amounts = Default::default();
        self.settled_count = 0;
        self.progress = None;
        self.give_back(freed);
    }
}

/// Weights grow for ever and wrap; those that wait are never far apart.
const fn is_earlier(left: u32, right: u32) -> bool {
    left != right && right.wrapping_sub(left) <= u32::MAX / 2
}
