//! Ordering of ordered and sequenced messages on one channel (docs/raknet.md#ordering).

use crate::raknet::connection::block_header::{BlockHeader, Context, IncomingMessage};
use crate::raknet::connection::channels::{Channels, Packed, pack, unpack};
use crate::serial::U24;
use crate::storage::{Block, BlockLink, OrderHeap, Pool};

/// The handling of a received message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Disposition {
    Deliver,
    /// Buffer it: earlier messages are missing.
    Buffer,
    /// Drop it: a newer message was delivered.
    Discard,
}

/// The receiving side of one channel.
///
/// Sequenced messages belong to the interval before the ordered message with the same ordering index. Within an
/// interval, a sequenced message is dropped if a newer one was delivered.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReorderBuffer {
    /// The ordering index of the next ordered message.
    next_order: U24,
    /// The lowest sequencing index that is still delivered in this interval.
    next_sequence: U24,
    /// Messages that arrived before their predecessors.
    buffered: OrderHeap,
}

impl ReorderBuffer {
    /// Creates a channel that expects the ordering index `order` first.
    #[cfg(test)]
    pub(super) fn starting_at(order: U24) -> Self {
        Self { next_order: order, ..Self::default() }
    }

    pub(super) fn disposition(&self, message: &IncomingMessage) -> Disposition {
        if message.order.is_newer_than(self.next_order) {
            return Disposition::Buffer;
        }
        let outdated = message.order != self.next_order
            || message.is_sequenced() && message.sequence.is_older_than(self.next_sequence);
        if outdated { Disposition::Discard } else { Disposition::Deliver }
    }

    /// Advances the indices after a message was delivered.
    pub(super) fn advance(&mut self, message: &IncomingMessage) {
        if message.is_sequenced() {
            self.next_sequence = message.sequence.next();
        } else {
            self.next_order = self.next_order.next();
            self.next_sequence = U24::new(0);
        }
    }

    /// Buffers a message until its predecessors are received.
    pub(super) fn push(&mut self, pool: &mut Pool<'_, BlockHeader>, message: Block) {
        self.buffered.push(pool, message, comes_before);
    }

    /// Returns the first buffered message in order.
    pub(super) const fn first(&self) -> BlockLink {
        self.buffered.first()
    }

    /// Takes the first buffered message in order.
    pub(super) fn pop(&mut self, pool: &mut Pool<'_, BlockHeader>) -> BlockLink {
        self.buffered.pop(pool, comes_before)
    }

    /// Frees all buffered messages; returns the number of their blocks.
    pub(super) fn free_all(mut self, cx: &mut Context<'_, '_>) -> usize {
        self.buffered.free_all(cx.pool)
    }
}

/// Returns how to handle a message. A message that is neither ordered nor sequenced is delivered.
pub(super) fn disposition(
    channels: &Channels<ReorderBuffer>,
    cx: &Context<'_, '_>,
    message: &IncomingMessage,
) -> Disposition {
    if !message.is_in_order() {
        return Disposition::Deliver;
    }
    channels.get(cx.pool, message.channel).disposition(message)
}

impl Packed for ReorderBuffer {
    const BYTES: usize = 12;

    fn pack(&self, bytes: &mut [u8]) {
        let first = self.buffered.first().map_or(0, Block::number);
        pack([self.next_order.get(), self.next_sequence.get(), first], bytes);
    }

    fn unpack(bytes: &[u8]) -> Self {
        let [order, sequence, first] = unpack(bytes);
        Self {
            next_order: U24::new(order),
            next_sequence: U24::new(sequence),
            buffered: OrderHeap::with_first(Block::numbered(first)),
        }
    }
}

fn comes_before(left: &BlockHeader, right: &BlockHeader) -> bool {
    let (Some(left), Some(right)) = (left.received(), right.received()) else { return false };
    precedes(left, right)
}

/// Returns true if `left` precedes `right` on their channel.
fn precedes(left: &IncomingMessage, right: &IncomingMessage) -> bool {
    if left.order != right.order {
        return left.order.is_older_than(right.order);
    }
    match (left.is_sequenced(), right.is_sequenced()) {
        (true, false) => true,
        (true, true) => left.sequence.is_older_than(right.sequence),
        (false, _) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raknet::delivery::Reliability;

    fn ordered(order: u32) -> IncomingMessage {
        IncomingMessage {
            reliability: Reliability::ReliableOrdered,
            order: U24::new(order),
            ..IncomingMessage::default()
        }
    }

    fn sequenced(order: u32, sequence: u32) -> IncomingMessage {
        IncomingMessage {
            reliability: Reliability::UnreliableSequenced,
            sequence: U24::new(sequence),
            ..ordered(order)
        }
    }

    #[test]
    fn ordered_messages_wait_for_earlier_messages() {
        let mut channel = ReorderBuffer::starting_at(U24::new(0xFF_FFFF));
        assert_eq!(channel.disposition(&ordered(0)), Disposition::Buffer);
        assert_eq!(channel.disposition(&ordered(0xFF_FFFF)), Disposition::Deliver);
        channel.advance(&ordered(0xFF_FFFF));
        assert_eq!(channel.disposition(&ordered(0)), Disposition::Deliver);
        assert_eq!(channel.disposition(&ordered(0xFF_FFFF)), Disposition::Discard);
    }

    #[test]
    fn sequenced_messages_are_dropped_after_a_newer_sequenced_or_the_next_ordered_message() {
        let mut channel = ReorderBuffer::default();
        assert_eq!(channel.disposition(&sequenced(0, 3)), Disposition::Deliver);
        channel.advance(&sequenced(0, 3));
        assert_eq!(channel.disposition(&sequenced(0, 2)), Disposition::Discard);
        assert_eq!(channel.disposition(&sequenced(0, 4)), Disposition::Deliver);
        assert_eq!(channel.disposition(&sequenced(1, 0)), Disposition::Buffer);
        channel.advance(&ordered(0));
        assert_eq!(channel.disposition(&sequenced(0, 9)), Disposition::Discard);
        assert_eq!(channel.disposition(&sequenced(1, 0)), Disposition::Deliver);
    }

    #[test]
    fn sequenced_messages_precede_the_ordered_message_with_the_same_index() {
        let sorted = [sequenced(1, 0), sequenced(1, 7), ordered(1), sequenced(2, 3), ordered(2)];
        for (index, left) in sorted.iter().enumerate() {
            for (other, right) in sorted.iter().enumerate() {
                assert_eq!(precedes(left, right), index < other);
            }
        }
    }
}
