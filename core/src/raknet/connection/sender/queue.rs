//! The send queue: splitting, numbering and priorities of messages (docs/raknet.md#sending).
//!
//! It also contains the records of split messages with a receipt or reported progress.

use super::scheduling::{CLASSES, VirtualClock, class, is_earlier, place};
use crate::cursor::Writer;
use crate::endpoint::{Direction, MessageToSend, Outcome, Progress, Receipt, SendError};
use crate::raknet::config::{FAR_CHANNELS, PRIORITIES, SPLITTING};
use crate::raknet::connection::block_header::{
    BlockHeader, Context, OutgoingMessage, SendSource, SendStatus, SplitSend, key,
};
use crate::raknet::connection::channels::{Channels, NEAR, Packed, pack, unpack};
use crate::raknet::delivery::{Delivery, Priority, Reliability};
use crate::raknet::stats::{Waiting, WaitingAmounts};
use crate::raknet::wire::control::Control;
use crate::raknet::wire::datagram::Sizes;
use crate::serial::U24;
use crate::storage::{Block, BlockLink, List, NoRoom, Purpose, Queue, Share};

/// The size of a ping in bytes.
const PING: usize = 9;
/// The distance by which the reliable number of an unreliable ping precedes the next number.
///
/// It exceeds the distance of any queued message, and is less than half of the number space.
const BEFORE_ALL: u32 = 1 << 22;

/// The next ordering and sequencing indices of a channel.
#[derive(Clone, Copy, Debug, Default)]
struct ChannelIndices {
    order: U24,
    sequence: U24,
    /// The ordering index of the next message to send.
    ///
    /// A later message that is sent first would only be buffered at the receiver.
    next_to_send: U24,
}

impl Packed for ChannelIndices {
    const BYTES: usize = 12;

    fn pack(&self, bytes: &mut [u8]) {
        pack([self.order.get(), self.sequence.get(), self.next_to_send.get()], bytes);
    }

    fn unpack(bytes: &[u8]) -> Self {
        let [order, sequence, next_to_send] = unpack(bytes).map(U24::new);
        Self { order, sequence, next_to_send }
    }
}

/// Queued messages, and the counters from which they are numbered.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SendQueue {
    /// Lost messages, which precede new ones.
    pub(super) resend: Queue,
    /// New messages, by priority.
    new: [Queue; CLASSES.len()],
    /// The numbers of messages and bytes in `resend` and, by priority, in `new`.
    amounts: WaitingAmounts<{ Priority::COUNT + 1 }>,
    clock: VirtualClock,
    channels: Channels<ChannelIndices>,
    next_reliable: U24,
    next_receipt: u32,
    /// The share of blocks held by messages, queued or in flight, and by unread receipts.
    pub(super) share: Share,
    pub(super) splits: SplitSends,
    /// Receipts for the application.
    receipts: Queue,
}

/// The first message of a priority.
#[derive(Clone, Copy)]
struct Head {
    priority: Priority,
    block: Block,
    virtual_time: u32,
}

/// Identifies a queue of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QueueId {
    Resend,
    New(Priority),
}

impl QueueId {
    /// Returns the index of the queue in `amounts`.
    const fn index(self) -> usize {
        match self {
            Self::Resend => 0,
            Self::New(priority) => priority.index() + 1,
        }
    }
}

impl SendQueue {
    /// Sets the first reliable number of a new queue.
    pub(super) const fn start_numbers_at(&mut self, start: U24) {
        self.next_reliable = start;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.resend.is_empty() && self.new.iter().all(Queue::is_empty)
    }

    /// Returns the sizes of the queues: new messages by priority, and lost messages.
    pub(super) fn waiting(&self) -> ([Waiting; Priority::COUNT], Waiting) {
        let [resends, new @ ..] = self.amounts.amounts();
        (new, resends)
    }

    pub(super) fn count_in(&mut self, queue: QueueId, bytes: usize) {
        self.amounts.count_in(queue.index(), bytes);
    }

    pub(super) fn count_out(&mut self, queue: QueueId, bytes: usize) {
        self.amounts.count_out(queue.index(), bytes);
    }

    pub(super) const fn has_resends(&self) -> bool {
        !self.resend.is_empty()
    }

    /// Copies a message into the pool, and splits it if it does not fit into one capsule.
    ///
    /// A message in a vector is not copied.
    pub(super) fn push(
        &mut self,
        cx: &mut Context<'_, '_>,
        sizes: Sizes,
        message: MessageToSend<'_>,
        delivery: Delivery,
        purpose: Purpose,
    ) -> Result<Option<Receipt>, SendError> {
        let MessageToSend { bytes: payload, owned } = message;
        // Never zero, so divisions by it cannot panic. The compiler cannot infer this.
        let part_size = part_size(payload.len(), sizes);
        check_is_built_in(payload.len(), part_size, delivery)?;
        let priority = class(delivery.priority);
        let count =
            if !SPLITTING || payload.len() <= part_size { 1 } else { payload.len().div_ceil(part_size) };
        let is_split = count > 1;
        if is_split {
            self.check_length(cx, sizes, payload.len())?;
        }
        let is_recorded = is_split && Self::is_followed(cx, delivery);
        let of_copy = Self::blocks_for(cx, payload.len(), part_size);
        let of_parts =
            if owned.is_some() { self.without_copies(cx, of_copy, count, purpose)? } else { of_copy };
        let blocks = of_parts + usize::from(is_recorded);
        self.admit(cx, payload.len(), blocks, delivery, purpose)?;
        let mut message = self.number(cx, delivery, is_split);
        if is_split {
            message.split(u32::try_from(count).unwrap_or(u32::MAX), self.splits.take_id());
        }
        if is_recorded {
            self.splits.insert(cx, &message);
        }
        for part in payload.chunks(if SPLITTING { part_size } else { usize::MAX }) {
            let virtual_time = self.assign_virtual_time(cx, priority);
            let status = SendStatus::Queued { virtual_time, queued_at: cx.now };
            // Cannot fail: the blocks were charged for all parts at once.
            let header = BlockHeader::Outgoing(message, status);
            let stored = match owned {
                None => cx.pool.store(part, &header),
                Some(id) => cx.pool.store_owned(id, part.len(), &header),
            };
            let Some(block) = stored else { break };
            self.queue(priority).push(cx.pool, block);
            self.count_in(QueueId::New(priority), part.len());
            message.advance_part();
        }
        Ok((message.receipt != 0).then_some(Receipt(message.receipt)))
    }

    /// Checks whether a message of `bytes` bytes would be accepted.
    pub(super) fn can_push(
        &self,
        cx: &Context<'_, '_>,
        sizes: Sizes,
        bytes: usize,
        delivery: Delivery,
    ) -> Result<(), SendError> {
        if bytes == 0 {
            return Err(SendError::Empty);
        }
        let part_size = part_size(bytes, sizes);
        check_is_built_in(bytes, part_size, delivery)?;
        if SPLITTING && bytes > part_size {
            self.check_length(cx, sizes, bytes)?;
        }
        let is_recorded = SPLITTING && bytes > part_size && Self::is_followed(cx, delivery);
        let blocks = Self::blocks_for(cx, bytes, part_size) + usize::from(is_recorded);
        let missing = self.missing_blocks(cx, delivery);
        // Copies of the accounts, so that nothing is charged.
        let (mut shares, mut share) = (cx.pool.shares, self.share);
        let mut charged = shares.charge(&mut share, blocks, Purpose::Send);
        if charged.is_ok() && missing > 0 && !shares.charge_table(&mut share, missing, Purpose::Send) {
            charged = Err(NoRoom::InPool);
        }
        charged.map_err(|no_room| self.refusal(cx, blocks, missing, Purpose::Send, no_room))
    }

    /// Returns the maximum length of a message; a peer with the same configuration and memory can receive it.
    ///
    /// The receiver reserves blocks for the longest parts of any implementation and one for the record. It accepts only
    /// messages that need less than its whole share.
    pub(super) fn max_message_len(&self, cx: &Context<'_, '_>, sizes: Sizes) -> usize {
        let shares = &cx.pool.shares;
        let sent = shares.most(&self.share, Purpose::Send);
        let in_one = sent.saturating_mul(cx.pool.block_size()).min(sizes.part());
        if !SPLITTING || in_one < sizes.part() {
            return in_one;
        }
        let received = shares.most(&self.share, Purpose::Receive);
        let parts_of = |blocks: usize, part: usize| {
            blocks.saturating_sub(1).checked_div(cx.pool.blocks_for(part)).unwrap_or(0)
        };
        let parts = parts_of(sent, sizes.part()).min(parts_of(received, sizes.foreign_part()));
        let limit = usize::try_from(cx.config.max_message_len).unwrap_or(usize::MAX);
        parts.saturating_mul(sizes.part()).min(limit).max(in_one)
    }

    /// Checks that a split message is within the maximum length.
    #[cold]
    fn check_length(&self, cx: &Context<'_, '_>, sizes: Sizes, bytes: usize) -> Result<(), SendError> {
        if bytes > self.max_message_len(cx, sizes) { Err(SendError::NeverFits) } else { Ok(()) }
    }

    /// Returns true if a split message needs a record for its receipt or its progress.
    fn is_followed(cx: &Context<'_, '_>, delivery: Delivery) -> bool {
        delivery.reliability.has_receipt() || cx.config.progress_interval > 0
    }

    /// Returns the number of blocks to allocate for the state of a message's channel.
    #[inline]
    fn missing_blocks(&self, cx: &Context<'_, '_>, delivery: Delivery) -> usize {
        let channel = delivery.channel.number();
        if delivery.reliability.has_channel() { self.channels.missing_blocks(cx.pool, channel) } else { 0 }
    }

    /// Returns the error for a message that needs `blocks` blocks, and `missing` blocks for its channel.
    #[cold]
    fn refusal(
        &self,
        cx: &Context<'_, '_>,
        blocks: usize,
        missing: usize,
        purpose: Purpose,
        no_room: NoRoom,
    ) -> SendError {
        match no_room {
            _ if !cx.pool.shares.could_hold(&self.share, blocks, missing, purpose) => SendError::NeverFits,
            NoRoom::InShare => SendError::QuotaExceeded,
            NoRoom::InPool => SendError::PoolExhausted,
        }
    }

    /// Returns the number of blocks for the `count` parts of a message that is not copied.
    ///
    /// The limit is that a copy of the message would fit into `of_copy` blocks: the remote peer may have no more blocks
    /// than this peer, and reserves blocks for a copy.
    #[cold]
    fn without_copies(
        &self,
        cx: &Context<'_, '_>,
        of_copy: usize,
        count: usize,
        purpose: Purpose,
    ) -> Result<usize, SendError> {
        let fits = cx.pool.shares.could_hold(&self.share, of_copy, 0, purpose);
        if fits { Ok(count) } else { Err(SendError::NeverFits) }
    }

    /// Returns the number of blocks for the parts of a message.
    pub(super) fn blocks_for(cx: &Context<'_, '_>, bytes: usize, part: usize) -> usize {
        let part = part.max(1);
        if !SPLITTING || bytes <= part {
            return cx.pool.blocks_for(bytes);
        }
        let last = (bytes % part).div_ceil(cx.pool.block_size());
        bytes / part * cx.pool.blocks_for(part) + last
    }

    /// Charges the blocks of a message and of the state of its channel.
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
        let channel = delivery.channel.number();
        let missing = self.missing_blocks(cx, delivery);
        let mut charged = cx.pool.shares.charge(&mut self.share, blocks, purpose);
        if charged.is_ok()
            && missing > 0
            && !self.channels.prepare(cx.pool, &mut self.share, purpose, channel)
        {
            cx.pool.shares.release(&mut self.share, blocks);
            charged = Err(NoRoom::InPool);
        }
        charged.map_err(|no_room| self.refusal(cx, blocks, missing, purpose, no_room))
    }

    /// Assigns the ordering and sequencing index of a message.
    ///
    /// Priorities may change the order of sending, but not the order of the indices.
    fn number(&mut self, cx: &mut Context<'_, '_>, delivery: Delivery, is_split: bool) -> OutgoingMessage {
        let receipt = if delivery.reliability.has_receipt() { self.take_receipt() } else { 0 };
        let reliability = delivery.reliability.on_wire(is_split);
        let mut message = OutgoingMessage::new(reliability, receipt);
        if !delivery.reliability.has_channel() {
            return message;
        }
        message.channel = delivery.channel.number();
        self.channels.update(cx.pool, message.channel, |channel, _| {
            message.order = channel.order;
            if delivery.reliability.is_sequenced() {
                message.sequence = channel.sequence;
                channel.sequence = channel.sequence.next();
            } else {
                channel.order = channel.order.next();
                channel.sequence = U24::new(0);
            }
        });
        message
    }

    pub(super) fn queue(&mut self, priority: Priority) -> &mut Queue {
        let [first, others @ ..] = &mut self.new;
        match place(priority).checked_sub(1).and_then(|at| others.get_mut(at)) {
            Some(queue) => queue,
            None => first,
        }
    }

    fn assign_virtual_time(&mut self, cx: &Context<'_, '_>, priority: Priority) -> u32 {
        if !PRIORITIES {
            return 0;
        }
        let head = self.earliest(cx, |_| true);
        self.clock.assign(priority, head.map(|head| (head.priority, head.virtual_time)))
    }

    /// Returns the message with the earliest virtual time.
    ///
    /// Candidates are the first message of each priority, if `may` returns true for it.
    fn earliest(&self, cx: &Context<'_, '_>, may: impl Fn(&OutgoingMessage) -> bool) -> Option<Head> {
        let mut best: Option<Head> = None;
        for (&priority, queue) in CLASSES.iter().zip(&self.new) {
            let Some(block) = queue.front() else { continue };
            let BlockHeader::Outgoing(message, SendStatus::Queued { virtual_time, .. }) =
                *cx.pool.header(block)
            else {
                continue;
            };
            if best.is_none_or(|best| is_earlier(virtual_time, best.virtual_time)) && may(&message) {
                best = Some(Head { priority, block, virtual_time });
            }
        }
        best
    }

    /// Returns true if all earlier messages of the message's channel have been sent.
    ///
    /// A message never overtakes earlier messages of its channel: the receiver would have to buffer it in memory that
    /// the earlier messages need. The message queued first may always be sent, so there is always a candidate.
    fn may_be_sent(&self, cx: &Context<'_, '_>, message: &OutgoingMessage) -> bool {
        let next_to_send = || self.channels.get(cx.pool, message.channel).next_to_send;
        !message.reliability.has_channel() || !message.order.is_newer_than(next_to_send())
    }

    /// Returns the next message of a send source.
    pub(super) fn next(&self, cx: &Context<'_, '_>, source: SendSource) -> Option<(QueueId, Block)> {
        let resend = || self.resend.front().map(|message| (QueueId::Resend, message));
        match source {
            SendSource::Usual => resend().or_else(|| {
                let head = self.earliest(cx, |message| self.may_be_sent(cx, message))?;
                Some((QueueId::New(head.priority), head.block))
            }),
            SendSource::OldestLost | SendSource::PartlyAcknowledged | SendSource::NewestLost => resend(),
            SendSource::PathProbe => None,
            SendSource::New(priority) => {
                let message = self.new.get(place(priority))?.front()?;
                self.may_be_sent(cx, cx.pool.header(message).outgoing()?)
                    .then_some((QueueId::New(class(priority)), message))
            }
        }
    }

    /// Takes the message that [`next`](Self::next) returned.
    pub(super) fn pop(&mut self, cx: &mut Context<'_, '_>, id: QueueId) -> BlockLink {
        let message = match id {
            QueueId::Resend => self.resend.pop(cx.pool)?,
            QueueId::New(priority) => self.queue(priority).pop(cx.pool)?,
        };
        self.count_out(id, cx.pool.size(message));
        if id != QueueId::Resend {
            self.advance_channel(cx, message);
        }
        Some(message)
    }

    /// Allows the next message of the channel to be sent after `message`.
    pub(super) fn advance_channel(&mut self, cx: &mut Context<'_, '_>, message: Block) {
        let Some(message) = cx.pool.header(message).outgoing() else { return };
        let reliability = message.reliability;
        if !message.is_last_part() || !reliability.has_channel() || reliability.is_sequenced() {
            return;
        }
        let (number, next_to_send) = (message.channel, message.order.next());
        self.channels.update(cx.pool, number, |channel, _| channel.next_to_send = next_to_send);
    }

    /// Takes a reliable number. The number is assigned when a message is first sent, so reordering by priority leaves
    /// no gaps in the numbers.
    pub(super) const fn take_reliable_number(&mut self) -> U24 {
        let number = self.next_reliable;
        self.next_reliable = number.next();
        number
    }

    /// Takes a receipt number. They start at 1, because 0 means none.
    const fn take_receipt(&mut self) -> u32 {
        self.next_receipt = self.next_receipt.wrapping_add(1);
        if self.next_receipt == 0 {
            self.next_receipt = 1;
        }
        self.next_receipt
    }

    /// Queues a lost message for retransmission. An unreliable message is not retransmitted.
    pub(super) fn push_resend(&mut self, cx: &mut Context<'_, '_>, message: Block) {
        let header = cx.pool.header(message).outgoing();
        if !header.is_some_and(|header| header.reliability.is_reliable()) {
            self.resolve(cx, message, Outcome::Lost);
            return;
        }
        self.resend.push(cx.pool, message);
        self.count_in(QueueId::Resend, cx.pool.size(message));
    }

    /// Stores the record of an unreliable ping until it is acknowledged or lost.
    pub(super) fn store_probe(&mut self, cx: &mut Context<'_, '_>, ping: &Control<'_>) -> BlockLink {
        cx.pool.shares.charge(&mut self.share, 1, Purpose::Control).ok()?;
        // Lost datagrams are sorted by reliable number. With this number a lost ping precedes all retransmissions, so
        // its block is freed first.
        store_ping(cx, ping, Reliability::Unreliable, self.next_reliable.minus(BEFORE_ALL))
    }

    /// Frees a message or part with a known outcome, and creates a receipt if one was requested.
    pub(super) fn resolve(&mut self, cx: &mut Context<'_, '_>, message: Block, outcome: Outcome) {
        let Some(header) = cx.pool.header(message).outgoing() else { return };
        let (split_id, receipt) = (header.split_id(), header.receipt);
        if header.is_split() {
            self.free(cx, message);
            self.resolve_part(cx, split_id);
        } else if receipt != 0 {
            let freed = cx.pool.truncate(message);
            self.release(cx, freed);
            self.push_receipt(cx, message, Receipt(receipt), outcome);
        } else {
            self.free(cx, message);
        }
    }

    /// Handles the acknowledgement of a part of a message.
    fn resolve_part(&mut self, cx: &mut Context<'_, '_>, split_id: u16) {
        let Some((record, send)) = self.splits.on_part_acked(cx, split_id) else { return };
        if send.receipt == 0 {
            self.free(cx, record);
        } else {
            self.push_receipt(cx, record, Receipt(send.receipt), Outcome::Acknowledged);
        }
    }

    /// Turns the remaining block of a message into a receipt for the application.
    fn push_receipt(&mut self, cx: &mut Context<'_, '_>, message: Block, receipt: Receipt, outcome: Outcome) {
        *cx.pool.header_mut(message) = BlockHeader::Receipt(receipt, outcome);
        self.receipts.push(cx.pool, message);
    }

    /// Takes the receipts for the application. Each receipt keeps one charged block.
    pub(super) fn take_receipts(&mut self) -> Queue {
        core::mem::take(&mut self.receipts)
    }

    /// Takes the progress of a split message that is being sent.
    pub(super) const fn take_progress(&mut self) -> Option<Progress> {
        if SPLITTING { self.splits.progress.take() } else { None }
    }

    pub(super) const fn has_progress(&self) -> bool {
        SPLITTING && self.splits.progress.is_some()
    }

    /// Frees a message.
    pub(super) fn free(&mut self, cx: &mut Context<'_, '_>, message: Block) {
        let freed = cx.pool.free(message);
        self.release(cx, freed);
    }

    /// Releases blocks that were freed.
    pub(super) fn release(&mut self, cx: &mut Context<'_, '_>, blocks: usize) {
        cx.pool.shares.release(&mut self.share, blocks);
    }

    /// Returns the share of blocks held by messages, queued or in flight, and by receipts.
    pub(super) const fn share(&self) -> &Share {
        &self.share
    }

    /// Releases everything that is still charged.
    pub(super) fn close_share(&mut self, cx: &mut Context<'_, '_>) {
        cx.pool.shares.close(&mut self.share);
    }

    /// Frees all queued messages.
    pub(super) fn clear(&mut self, cx: &mut Context<'_, '_>) {
        let mut freed = self.resend.free_all(cx.pool) + self.receipts.free_all(cx.pool);
        self.channels.clear(cx.pool, &mut self.share);
        for queue in &mut self.new {
            freed += queue.free_all(cx.pool);
        }
        if SPLITTING {
            freed += self.splits.clear(cx);
        }
        self.amounts = WaitingAmounts::default();
        self.release(cx, freed);
    }
}

/// Stores a ping with the reliable number `number` in a block. Precondition: the block is charged.
pub(super) fn store_ping(
    cx: &mut Context<'_, '_>,
    ping: &Control<'_>,
    reliability: Reliability,
    number: U24,
) -> BlockLink {
    let mut buffer = [0; PING];
    let mut writer = Writer::new(&mut buffer);
    ping.write_of_client(&mut writer).ok()?;
    let mut message = OutgoingMessage::new(reliability, 0);
    message.reliable = number;
    cx.pool.store(writer.finish(), &BlockHeader::Outgoing(message, SendStatus::RESEND))
}

/// Returns the length of every part but the last of a message; never 0.
///
/// For a message that is not split it is the maximum unsplit length. A message is split into the minimum number of
/// parts, of about equal length. After a reduction of the path MTU, either all parts are too large or none is, so no
/// part is received without the others (docs/raknet.md#path-mtu).
#[cfg_attr(target_pointer_width = "64", inline)]
pub(super) fn part_size(bytes: usize, sizes: Sizes) -> usize {
    let most = sizes.part().max(1);
    if !SPLITTING || bytes <= most {
        return most;
    }
    let count = bytes.div_ceil(most).max(1);
    bytes.div_ceil(count).max(1)
}

/// Checks that the build has the features that the message requires.
fn check_is_built_in(bytes: usize, part_size: usize, delivery: Delivery) -> Result<(), SendError> {
    let needs_splitting = !SPLITTING && bytes > part_size;
    let is_far = usize::from(delivery.channel.number()) >= NEAR;
    let needs_channels = !FAR_CHANNELS && delivery.reliability.has_channel() && is_far;
    if needs_splitting || needs_channels { Err(SendError::FeatureDisabled) } else { Ok(()) }
}

/// Records of split messages, which count the acknowledged parts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SplitSends {
    records: List,
    next_id: u16,
    progress: Option<Progress>,
}

impl SplitSends {
    /// Takes an id for a split message.
    pub(super) const fn take_id(&mut self) -> u16 {
        let id = self.next_id;
        self.next_id = id.wrapping_add(1);
        id
    }

    /// Returns the rank by age of a split id among the ids in use; a later id has a greater rank.
    pub(super) const fn place(&self, id: u16) -> u16 {
        id.wrapping_sub(self.next_id)
    }

    /// Creates the record of a message, which exists until all parts are acknowledged.
    pub(super) fn insert(&mut self, cx: &mut Context<'_, '_>, message: &OutgoingMessage) {
        let header = BlockHeader::SplitSend(SplitSend {
            owner: cx.slot,
            split_id: message.split_id(),
            parts: message.split_count(),
            acknowledged: 0,
            receipt: message.receipt,
        });
        let Some(record) = cx.pool.store(&[], &header) else { return };
        cx.index.insert(cx.pool, key::split_send(cx.slot, message.split_id()), record);
        self.records.push(cx.pool, record);
    }

    /// Counts an acknowledged part.
    ///
    /// After the last part, it removes the record and returns it with its contents.
    fn on_part_acked(&mut self, cx: &mut Context<'_, '_>, split_id: u16) -> Option<(Block, SplitSend)> {
        let record = find(cx, split_id)?;
        let BlockHeader::SplitSend(send) = cx.pool.header_mut(record) else { return None };
        send.acknowledged += 1;
        let send = *send;
        let (done, parts) = (send.acknowledged, send.parts);
        if done.checked_rem(cx.config.progress_interval) == Some(0) {
            self.progress = Some(Progress { direction: Direction::Sending, message: split_id, done, parts });
        }
        if done < parts {
            return None;
        }
        self.remove(cx, record, split_id);
        Some((record, send))
    }

    fn remove(&mut self, cx: &mut Context<'_, '_>, record: Block, split_id: u16) {
        cx.index.remove(cx.pool, key::split_send(cx.slot, split_id), record);
        self.records.remove(cx.pool, record);
    }

    /// Frees all records; returns the number of their blocks.
    fn clear(&mut self, cx: &mut Context<'_, '_>) -> usize {
        let mut freed = 0;
        while let Some(record) = self.records.oldest() {
            let BlockHeader::SplitSend(send) = *cx.pool.header(record) else { break };
            self.remove(cx, record, send.split_id);
            freed += cx.pool.free(record);
        }
        self.progress = None;
        freed
    }
}

/// Moves the record of a message without acknowledged parts to another id.
pub(super) fn renew(cx: &mut Context<'_, '_>, split_id: u16, message: &OutgoingMessage) {
    let Some(record) = find(cx, split_id) else { return };
    cx.index.remove(cx.pool, key::split_send(cx.slot, split_id), record);
    if let BlockHeader::SplitSend(send) = cx.pool.header_mut(record) {
        (send.split_id, send.parts) = (message.split_id(), message.split_count());
    }
    cx.index.insert(cx.pool, key::split_send(cx.slot, message.split_id()), record);
}

/// Returns the record of the message with this id.
fn find(cx: &mut Context<'_, '_>, split_id: u16) -> BlockLink {
    let owner = cx.slot;
    cx.index.find(cx.pool, key::split_send(owner, split_id), |header| {
        matches!(header, BlockHeader::SplitSend(send) if send.owner == owner && send.split_id == split_id)
    })
}
