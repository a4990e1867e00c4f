//! Ordered and sequenced messages of one channel (supplement 4.14).

use super::block_header::BlockHeader;
use super::channels::{Packed, pack, unpack};
use crate::serial::U24;
use crate::storage::{Block, OrderHeap};

/// When a message may be delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Disposition {
    Deliver,
    /// Messages before it are still missing.
    Buffer,
    /// A newer one was delivered.
    Discard,
}

/// The receiving side of one channel. Sequenced messages belong to the gap before the ordered message whose index
/// they carry; within the gap only newer ones pass.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReorderBuffer {
    /// The ordering index of the next ordered message.
    order: U24,
    /// The lowest sequencing index that still passes in this gap.
    sequence: U24,
    pub(super) buffered: OrderHeap,
}

impl ReorderBuffer {
    /// A channel that expects the ordering index `order` first.
    #[cfg(test)]
    pub(super) fn starting_at(order: U24) -> Self {
        Self { order, ..Self::default() }
    }

    pub(super) fn disposition(&self, header: &BlockHeader) -> Disposition {
        if header.order.is_newer_than(self.order) {
            return Disposition::Buffer;
        }
        let outdated = header.order != self.order
            || header.reliability.is_sequenced() && header.sequence.is_older_than(self.sequence);
        if outdated { Disposition::Discard } else { Disposition::Deliver }
    }

    /// Remembers that a message whose disposition it was is delivered.
    pub(super) fn pass(&mut self, header: &BlockHeader) {
        if header.reliability.is_sequenced() {
            self.sequence = header.sequence.next();
        } else {
            self.order = self.order.next();
            self.sequence = U24::new(0);
        }
    }
}

impl Packed for ReorderBuffer {
    const BYTES: usize = 12;

    fn pack(&self, bytes: &mut [u8]) {
        let buffered = self.buffered.first().map_or(0, Block::number);
        pack([self.order.get(), self.sequence.get(), buffered], bytes);
    }

    fn unpack(bytes: &[u8]) -> Self {
        let [order, sequence, buffered] = unpack(bytes);
        let buffered = OrderHeap::with_first(Block::numbered(buffered));
        Self { order: U24::new(order), sequence: U24::new(sequence), buffered }
    }
}

/// Whether `left` comes before `right` on their channel.
pub(super) fn comes_before(left: &BlockHeader, right: &BlockHeader) -> bool {
    if left.order != right.order {
        return left.order.is_older_than(right.order);
    }
    match (left.reliability.is_sequenced(), right.reliability.is_sequenced()) {
        (true, false) => true,
        (true, true) => left.sequence.is_older_than(right.sequence),
        (false, _) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raknet::delivery::Reliability;

    fn ordered(order: u32) -> BlockHeader {
        BlockHeader {
            reliability: Reliability::ReliableOrdered,
            order: U24::new(order),
            ..BlockHeader::default()
        }
    }

    fn sequenced(order: u32, sequence: u32) -> BlockHeader {
        BlockHeader {
            reliability: Reliability::UnreliableSequenced,
            sequence: U24::new(sequence),
            ..ordered(order)
        }
    }

    #[test]
    fn ordered_messages_wait_for_those_before() {
        let mut channel = ReorderBuffer::starting_at(U24::new(0xFF_FFFF));
        assert_eq!(channel.disposition(&ordered(0)), Disposition::Buffer);
        assert_eq!(channel.disposition(&ordered(0xFF_FFFF)), Disposition::Deliver);
        channel.pass(&ordered(0xFF_FFFF));
        assert_eq!(channel.disposition(&ordered(0)), Disposition::Deliver);
        assert_eq!(channel.disposition(&ordered(0xFF_FFFF)), Disposition::Discard);
    }

    #[test]
    fn sequenced_messages_pass_only_if_newer_within_their_gap() {
        let mut channel = ReorderBuffer::default();
        assert_eq!(channel.disposition(&sequenced(0, 3)), Disposition::Deliver);
        channel.pass(&sequenced(0, 3));
        assert_eq!(channel.disposition(&sequenced(0, 2)), Disposition::Discard);
        assert_eq!(channel.disposition(&sequenced(0, 4)), Disposition::Deliver);
        assert_eq!(channel.disposition(&sequenced(1, 0)), Disposition::Buffer);
        channel.pass(&ordered(0));
        assert_eq!(channel.disposition(&sequenced(0, 9)), Disposition::Discard);
        assert_eq!(channel.disposition(&sequenced(1, 0)), Disposition::Deliver);
    }

    #[test]
    fn what_waits_is_sorted_by_gap_then_kind_then_sequence() {
        let sorted = [sequenced(1, 0), sequenced(1, 7), ordered(1), sequenced(2, 3), ordered(2)];
        for (index, left) in sorted.iter().enumerate() {
            for (other, right) in sorted.iter().enumerate() {
                assert_eq!(comes_before(left, right), index < other);
            }
        }
    }
}
