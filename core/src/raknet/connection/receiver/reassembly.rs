//! Reassembly of split messages (docs/raknet.md#splits).
//!
//! The first part received creates a record and reserves blocks in the pool for all parts. If that fails, the part is
//! not acknowledged. A message can therefore always be completed once any of its parts was acknowledged. Parts are
//! indexed, so their order does not matter.
//!
//! With the feature `zero-copy` a large message is assembled in a vector as its parts are received. Only parts ahead of
//! a gap are stored in blocks. The reservation stays charged, and the vector never exceeds the blocks charged for its
//! message. All vectors of a peer together therefore take no more memory than its blocks.
//!
//! If the acknowledgement of an unsplit message is lost, its sender may later split the message, although it was
//! received (docs/raknet.md#path-mtu). The first part has the message's original number, so it is a duplicate. Its
//! split id is remembered to drop the other parts: they have new numbers, and without the first part their message
//! would never complete.

use super::reorder_buffer::{Disposition, ReorderBuffer, disposition};
use super::share::{ReceiveError, ReceiveShare};
use crate::endpoint::{Direction, Progress};
use crate::raknet::config::SPLITTING;
use crate::raknet::connection::block_header::{BlockHeader, Context, IncomingMessage, Part, Partial, key};
use crate::raknet::connection::channels::Channels;
use crate::raknet::stats::DropReason;
use crate::raknet::wire::datagram::{Sizes, Split};
use crate::raknet::wire::{MAX_MTU, MIN_MTU};
use crate::serial::U24;
use crate::storage::{Block, BlockLink, Purpose, Queue, ZERO_COPY};

/// The records of split messages that are being received.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reassembly {
    records: Queue,
    /// Messages that were received unsplit before their sender split them.
    cut: CutMessages,
    /// The latest progress of a split message, if the application enabled it.
    pub(super) progress: Option<Progress>,
}

/// A received part of a split message.
#[derive(Clone, Copy)]
pub(super) struct ArrivedPart<'d> {
    pub(super) message: IncomingMessage,
    pub(super) split: Split,
    pub(super) payload: &'d [u8],
    /// The channels; the message may be ordered or sequenced on one of them.
    pub(super) channels: &'d Channels<ReorderBuffer>,
}

impl ArrivedPart<'_> {
    /// Returns how the complete message would be handled.
    fn disposition(&self, cx: &Context<'_, '_>) -> Disposition {
        disposition(self.channels, cx, &self.message)
    }
}

impl Reassembly {
    /// Stores a part; returns the reassembled message if no part is missing.
    pub(super) fn on_part(
        &mut self,
        cx: &mut Context<'_, '_>,
        share: &mut ReceiveShare,
        sizes: Sizes,
        part: &ArrivedPart<'_>,
    ) -> Result<BlockLink, ReceiveError> {
        let split = part.split;
        let record = match find_partial(cx, split.id) {
            Some(record) if agrees(cx.pool.header(record), part.message, part.split) => record,
            Some(_) => {
                cx.stats.drop(DropReason::BadSplit);
                return Ok(None);
            }
            None => self.admit(cx, share, sizes, part)?,
        };
        if is_known(cx, record, split) {
            cx.stats.drop(DropReason::DuplicateMessage);
            return Ok(None);
        }
        keep_part(cx, share, sizes, record, part)?;
        let Some(partial) = partial_mut(cx, record) else { return Ok(None) };
        partial.received += 1;
        let (done, parts) = (partial.received, partial.parts);
        if done.checked_rem(cx.config.progress_interval) == Some(0) {
            let (direction, message) = (Direction::Receiving, split.id);
            self.progress = Some(Progress { direction, message, done, parts });
        }
        if done < parts {
            return Ok(None);
        }
        Ok(self.complete(cx, share, record, part))
    }

    /// Handles a part with a reliable number that was received before.
    ///
    /// If the number belonged to an unsplit message, that message was received before. The other parts are then not
    /// needed, and stored ones are freed.
    #[cold]
    pub(super) fn on_duplicate(
        &mut self,
        cx: &mut Context<'_, '_>,
        share: &mut ReceiveShare,
        message: IncomingMessage,
        number: U24,
        split: Split,
    ) {
        if !CutMessages::may_be(split) {
            return;
        }
        let mut arrived = 0;
        if let Some(record) = find_partial(cx, split.id) {
            if !agrees(cx.pool.header(record), message, split) || is_known(cx, record, split) {
                return;
            }
            arrived = partial_mut(cx, record).map_or(0, |partial| partial.received);
            self.records.remove(cx.pool, record);
            free_incomplete(cx, share, record);
        }
        self.cut.add(number, &message, split, arrived);
    }

    /// Returns true if a part with a new number belongs to a message that was received unsplit.
    pub(super) fn is_superseded(&mut self, message: &IncomingMessage, number: U24, split: Split) -> bool {
        message.reliability.has_number_on_wire() && self.cut.take(number, message, split)
    }

    /// Creates the record of a message and reserves blocks for all its parts.
    fn admit(
        &mut self,
        cx: &mut Context<'_, '_>,
        share: &mut ReceiveShare,
        sizes: Sizes,
        part: &ArrivedPart<'_>,
    ) -> Result<Block, ReceiveError> {
        let blocks_per_part = cx.pool.blocks_for(sizes.foreign_part());
        let count = usize::try_from(part.split.count).unwrap_or(usize::MAX);
        let promised = count.saturating_mul(blocks_per_part);
        if promised >= cx.pool.shares.most(&share.held, Purpose::Receive) {
            return Err(ReceiveError::MessageTooLarge);
        }
        let disposition = part.disposition(cx);
        if !share.take(cx, promised + 1, disposition) {
            return Err(ReceiveError::NoMemory);
        }
        let header = BlockHeader::Partial(Partial {
            owner: cx.slot,
            message: part.message,
            split_id: part.split.id,
            parts: part.split.count,
            received: 0,
            appended: 0,
            promised: u32::try_from(promised).unwrap_or(u32::MAX),
        });
        let Some(record) = cx.pool.store(&[], &header) else {
            share.release(cx, promised + 1);
            return Err(ReceiveError::NoMemory);
        };
        cx.index.insert(cx.pool, key::partial(cx.slot, part.split.id), record);
        self.records.push(cx.pool, record);
        share.on_fit();
        Ok(record)
    }

    /// Joins the parts of a complete message and removes its record.
    fn complete(
        &mut self,
        cx: &mut Context<'_, '_>,
        share: &mut ReceiveShare,
        record: Block,
        part: &ArrivedPart<'_>,
    ) -> BlockLink {
        if ZERO_COPY && cx.pool.is_owned(record) {
            return Some(self.complete_owned(cx, share, record, part));
        }
        let mut whole: BlockLink = None;
        for index in 0..part.split.count {
            let Some(part) = take_part(cx, part.split.id, index) else {
                continue;
            };
            match whole {
                None => whole = Some(part),
                Some(head) => cx.pool.join(head, part),
            }
        }
        self.records.remove(cx.pool, record);
        free_record(cx, share, record, part.split.id);
        if let Some(whole) = whole {
            *cx.pool.header_mut(whole) = BlockHeader::Received(part.message);
        }
        whole
    }

    /// Converts the record of a message into the complete message, once all its parts are in the vector.
    fn complete_owned(
        &mut self,
        cx: &mut Context<'_, '_>,
        share: &mut ReceiveShare,
        record: Block,
        part: &ArrivedPart<'_>,
    ) -> Block {
        self.records.remove(cx.pool, record);
        let promised = take_promise(cx, record, usize::MAX);
        share.release(cx, promised);
        cx.index.remove(cx.pool, key::partial(cx.slot, part.split.id), record);
        cx.pool.shrink_owned(record);
        *cx.pool.header_mut(record) = BlockHeader::Received(part.message);
        record
    }

    /// Frees the parts of incomplete messages. The work is bounded by the blocks reserved for them.
    pub(super) fn clear(&mut self, cx: &mut Context<'_, '_>, share: &mut ReceiveShare) {
        while let Some(record) = self.records.pop(cx.pool) {
            free_incomplete(cx, share, record);
        }
    }
}

/// Frees the parts of an incomplete message and its record. Precondition: the record has been removed from the list.
fn free_incomplete(cx: &mut Context<'_, '_>, share: &mut ReceiveShare, record: Block) {
    let Some(Partial { split_id, parts, .. }) = partial_mut(cx, record).copied() else { return };
    for index in 0..parts {
        if let Some(part) = take_part(cx, split_id, index) {
            let freed = cx.pool.free(part);
            share.release(cx, freed);
        }
    }
    free_record(cx, share, record, split_id);
}

/// Returns true if this part was received before.
fn is_known(cx: &mut Context<'_, '_>, record: Block, split: Split) -> bool {
    let is_appended = ZERO_COPY && appended(cx, record) > split.index;
    is_appended || find_part(cx, split.id, split.index).is_some()
}

/// Returns the number of leading parts that were appended to the vector.
fn appended(cx: &Context<'_, '_>, record: Block) -> u32 {
    if let BlockHeader::Partial(partial) = cx.pool.header(record) { partial.appended } else { 0 }
}

/// Stores a part: in the vector if it is the next one of a large message, or else in blocks.
fn keep_part(
    cx: &mut Context<'_, '_>,
    share: &mut ReceiveShare,
    sizes: Sizes,
    record: Block,
    part: &ArrivedPart<'_>,
) -> Result<(), ReceiveError> {
    let blocks = cx.pool.blocks_for(part.payload.len());
    // A part longer than the MTU allows takes more blocks than are reserved for a part.
    let excess = blocks.saturating_sub(cx.pool.blocks_for(sizes.foreign_part()));
    let disposition = part.disposition(cx);
    if excess > 0 && !share.take(cx, excess, disposition) {
        return Err(ReceiveError::NoMemory);
    }
    let is_next = ZERO_COPY && part.split.index == appended(cx, record);
    let is_kept = if is_next { append_part(cx, record, part, excess) } else { store_part(cx, part) };
    if !is_kept {
        share.release(cx, excess);
        return Err(ReceiveError::NoMemory);
    }
    share.on_fit();
    take_promise(cx, record, blocks - excess);
    Ok(())
}

/// Stores a part in blocks reserved for its message; returns false if no block is free.
fn store_part(cx: &mut Context<'_, '_>, part: &ArrivedPart<'_>) -> bool {
    let (owner, split_id, index) = (cx.slot, part.split.id, part.split.index);
    let header = BlockHeader::Part(Part { owner, split_id, index });
    let Some(block) = cx.pool.store(part.payload, &header) else { return false };
    cx.index.insert(cx.pool, key::part(owner, split_id, index), block);
    true
}

/// Appends the next part to the vector, followed by stored parts without a gap.
///
/// The first part determines whether the message is large. The parts of a smaller message are stored in blocks. Returns
/// false and stores nothing if there is no memory.
fn append_part(cx: &mut Context<'_, '_>, record: Block, part: &ArrivedPart<'_>, excess: usize) -> bool {
    let early = EarlyParts::after(cx, part.split);
    let room = promised(cx, record) + excess + early.blocks;
    let count = usize::try_from(part.split.count).unwrap_or(usize::MAX);
    let length = part.payload.len().saturating_mul(count);
    if !cx.pool.is_owned(record) && !cx.pool.begin_owned(record, length, room) {
        return store_part(cx, part);
    }
    if !cx.pool.grow_owned(record, part.payload.len() + early.bytes, room) {
        return false;
    }
    cx.pool.append_owned(record, part.payload, cx.pool.blocks_for(part.payload.len()));
    on_appended(cx, record);
    for _ in 0..early.count {
        // Each stored part is copied once; its blocks are freed but stay charged to the connection.
        let Some(part) = take_part(cx, part.split.id, appended(cx, record)) else { break };
        cx.pool.move_to_owned(record, part);
        on_appended(cx, record);
    }
    true
}

/// Stored parts that directly follow a part.
#[derive(Clone, Copy, Default)]
struct EarlyParts {
    count: u32,
    blocks: usize,
    bytes: usize,
}

impl EarlyParts {
    /// Returns the stored parts that follow a part without a gap.
    fn after(cx: &mut Context<'_, '_>, split: Split) -> Self {
        let mut early = Self::default();
        while let Some(part) = find_part(cx, split.id, split.index.saturating_add(early.count + 1)) {
            let bytes = cx.pool.size(part);
            early.count += 1;
            early.blocks += cx.pool.blocks_for(bytes);
            early.bytes += bytes;
        }
        early
    }
}

fn on_appended(cx: &mut Context<'_, '_>, record: Block) {
    if let Some(partial) = partial_mut(cx, record) {
        partial.appended += 1;
    }
}

/// Returns the number of blocks reserved for parts that have not been received yet.
fn promised(cx: &Context<'_, '_>, record: Block) -> usize {
    if let BlockHeader::Partial(partial) = cx.pool.header(record) { partial.promised as usize } else { 0 }
}

/// Takes up to `blocks` blocks from the reservation of a message; returns the number taken.
fn take_promise(cx: &mut Context<'_, '_>, record: Block, blocks: usize) -> usize {
    let Some(partial) = partial_mut(cx, record) else { return 0 };
    let taken = blocks.min(partial.promised as usize);
    partial.promised -= u32::try_from(taken).unwrap_or(partial.promised);
    taken
}

fn free_record(cx: &mut Context<'_, '_>, share: &mut ReceiveShare, record: Block, split_id: u16) {
    let promised = take_promise(cx, record, usize::MAX);
    cx.index.remove(cx.pool, key::partial(cx.slot, split_id), record);
    let freed = cx.pool.free(record);
    share.release(cx, promised + freed);
}

/// Returns true if a part is consistent with the record of its message.
fn agrees(record: &BlockHeader, message: IncomingMessage, split: Split) -> bool {
    let BlockHeader::Partial(record) = record else { return false };
    record.parts == split.count && record.message == message
}

fn partial_mut<'c>(cx: &'c mut Context<'_, '_>, record: Block) -> Option<&'c mut Partial> {
    let header = cx.pool.header_mut(record);
    let BlockHeader::Partial(partial) = header else {
        debug_assert!(false, "not the record of a message that arrives in parts: {header:?}");
        return None;
    };
    Some(partial)
}

fn find_partial(cx: &mut Context<'_, '_>, split_id: u16) -> BlockLink {
    let owner = cx.slot;
    cx.index.find(cx.pool, key::partial(owner, split_id), |header| {
        matches!(header, BlockHeader::Partial(partial) if partial.owner == owner && partial.split_id == split_id)
    })
}

fn find_part(cx: &mut Context<'_, '_>, split_id: u16, index: u32) -> BlockLink {
    let owner = cx.slot;
    cx.index.find(cx.pool, key::part(owner, split_id, index), |header| {
        let BlockHeader::Part(part) = header else { return false };
        part.owner == owner && part.split_id == split_id && part.index == index
    })
}

fn take_part(cx: &mut Context<'_, '_>, split_id: u16, index: u32) -> BlockLink {
    let part = find_part(cx, split_id, index)?;
    cx.index.remove(cx.pool, key::part(cx.slot, split_id, index), part);
    Some(part)
}

/// The number of remembered messages that were received unsplit and then sent again in parts.
///
/// The parts of one message are sent in succession, so several entries are needed only after further losses.
const MESSAGES: usize = if SPLITTING { 3 } else { 0 };
/// The maximum number of parts of a message that was first sent in one datagram.
///
/// A message with more parts never fitted into one datagram.
const MAX_PARTS: u32 = MAX_MTU.div_ceil(MIN_MTU) as u32;
/// The maximum distance between the number of the first part and the numbers of the other parts, in steps of
/// 2^[`STEP`].
///
/// It is 16,384 numbers, more than can be in flight. Split ids repeat after 65,536 messages in this crate, and
/// earlier in some implementations.
const MAX_STEPS: u16 = 64;
/// The binary logarithm of the step size.
const STEP: u32 = 8;

/// A message that was received unsplit and then sent again in parts.
#[derive(Clone, Copy, Debug, Default)]
struct CutMessage {
    id: u16,
    /// The number of the first part, in steps.
    first: u16,
    /// The low 8 bits of the ordering index.
    place: u8,
    /// The number of parts not received yet; 0 for an unused entry.
    left: u8,
}

/// The latest messages that were received unsplit and then sent again in parts, newest first.
#[derive(Clone, Copy, Debug, Default)]
struct CutMessages([CutMessage; MESSAGES]);

impl CutMessages {
    /// Returns true if a duplicate of this part may belong to a message that was received unsplit.
    ///
    /// It may also belong to an ordinary message of a few parts.
    fn may_be(split: Split) -> bool {
        SPLITTING && split.index == 0 && (2..=MAX_PARTS).contains(&split.count)
    }

    /// Remembers a message with a first part numbered `number`. `arrived` of its other parts were received.
    fn add(&mut self, number: U24, message: &IncomingMessage, split: Split, arrived: u32) {
        let left = split.count.saturating_sub(1).saturating_sub(arrived) as u8;
        let message = CutMessage { id: split.id, first: steps(number), place: place(message), left };
        let is_known =
            |known: &CutMessage| (known.id, known.first) == (message.id, message.first) && known.left > 0;
        if left == 0 || self.0.iter().any(is_known) {
            return;
        }
        self.0.rotate_right(1);
        if let Some(newest) = self.0.first_mut() {
            *newest = message;
        }
    }

    /// Returns true, and counts the part, if a new part belongs to a remembered message.
    fn take(&mut self, number: U24, message: &IncomingMessage, split: Split) -> bool {
        let is_remembered = |known: &&mut CutMessage| known.id == split.id && known.left > 0;
        let Some(known) = self.0.iter_mut().find(is_remembered) else { return false };
        if split.index == 0 {
            // All other parts of the remembered message were received, so this is another message that reuses its split
            // id.
            known.left = 0;
            return false;
        }
        let is_near = steps(number).wrapping_sub(known.first) < MAX_STEPS;
        let is_part = split.count <= MAX_PARTS && is_near && known.place == place(message);
        known.left -= u8::from(is_part);
        is_part
    }
}

/// Converts a number to steps.
const fn steps(number: U24) -> u16 {
    (number.get() >> STEP) as u16
}

/// Returns the low bits of a message's ordering index.
const fn place(message: &IncomingMessage) -> u8 {
    message.order.get() as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raknet::Reliability;

    const MESSAGE: IncomingMessage = IncomingMessage {
        reliability: Reliability::ReliableOrdered,
        channel: 0,
        sequence: U24::new(0),
        order: U24::new(0),
        followers: 0,
        length: 0,
    };

    const fn part(id: u16, index: u32) -> Split {
        Split { count: 2, id, index }
    }

    /// Returns true if a second part numbered `number` counts as part of the message with a first part numbered
    /// `first`.
    fn belongs(first: u32, number: u32) -> bool {
        let mut messages = CutMessages::default();
        messages.add(U24::new(first), &MESSAGE, part(7, 0), 0);
        messages.take(U24::new(number), &MESSAGE, part(7, 1))
    }

    #[test]
    fn the_last_three_resplit_messages_are_remembered() {
        let mut messages = CutMessages::default();
        assert!(!messages.take(U24::new(0), &MESSAGE, part(0, 1)), "an unused entry matches no message");
        for id in 0..6 {
            messages.add(U24::new(100), &MESSAGE, part(id, 0), 0);
        }
        let kept = (0..8).filter(|id| messages.take(U24::new(140), &MESSAGE, part(*id, 1)));
        assert!(kept.eq([3, 4, 5]));
    }

    #[test]
    fn a_resplit_message_is_forgotten_after_its_last_part() {
        let mut messages = CutMessages::default();
        let three = |index| Split { count: 3, id: 7, index };
        messages.add(U24::new(100), &MESSAGE, three(0), 1);
        messages.add(U24::new(100), &MESSAGE, three(0), 0);
        assert!(messages.take(U24::new(101), &MESSAGE, three(2)));
        assert!(!messages.take(U24::new(102), &MESSAGE, three(1)));
        messages.add(U24::new(100), &MESSAGE, three(0), 2);
        assert!(!messages.take(U24::new(103), &MESSAGE, three(1)));
    }

    #[test]
    fn only_near_parts_of_a_resplit_message_match_its_split_id() {
        assert!(belongs(0xFF_FFFF, 0), "numbers wrap");
        assert!(belongs(0, 16_000));
        assert!(!belongs(0, 16_384));
        assert!(!belongs(0xFF_FFFF, 0xFF_F000), "a part older than the first");
        let mut messages = CutMessages::default();
        messages.add(U24::new(100), &MESSAGE, part(7, 0), 0);
        let later = IncomingMessage { order: U24::new(1), ..MESSAGE };
        assert!(!messages.take(U24::new(103), &later, part(7, 1)), "a message with another ordering index");
        assert!(!messages.take(U24::new(102), &MESSAGE, part(7, 0)), "a first part with a new number");
        assert!(!messages.take(U24::new(103), &MESSAGE, part(7, 1)), "the other parts of that message");
    }

    #[test]
    fn only_messages_of_two_or_three_parts_are_remembered_as_resplit() {
        for (count, may_be) in [(1, false), (2, true), (MAX_PARTS, true), (MAX_PARTS + 1, false)] {
            assert_eq!(CutMessages::may_be(Split { count, id: 7, index: 0 }), may_be);
        }
        assert!(!CutMessages::may_be(part(7, 1)));
    }
}
