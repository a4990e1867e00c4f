//! What a connection keeps of a message beside its bytes.

use crate::raknet::delivery::{Channel, Delivery, Priority, Reliability};
use crate::raknet::event::{Outcome, Receipt};
use crate::raknet::wire::capsule::{CapsuleHeader, Split};
use crate::serial::U24;
use crate::time::Instant;

/// What an entry of the index stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Role {
    /// A message, or a part of one that is to be sent.
    #[default]
    Message,
    /// The first capsule of a datagram in flight.
    Datagram,
    /// The same of a datagram that was taken for lost and not resent yet.
    LostDatagram,
    /// The record of a message that arrives in parts.
    Partial,
    /// A part that arrived.
    Part,
    /// The record of a message that is sent in parts.
    Sending,
    /// What became of a message, for the application to read.
    Receipt,
}

/// What a connection keeps of a message, in the pool, beside its bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BlockHeader {
    pub(super) role: Role,
    pub(super) reliability: Reliability,
    pub(super) channel: u8,
    /// The slot of the connection.
    pub(super) owner: u16,
    pub(super) split_id: u16,
    /// Zero for a message that is whole.
    pub(super) split_count: u32,
    pub(super) split_index: u32,
    pub(super) reliable: U24,
    pub(super) sequence: U24,
    pub(super) order: U24,
    /// Datagram: its number.
    pub(super) datagram: U24,
    /// To be sent: its turn among the priorities. Datagram: its source. Lost datagram: how many were lost before it.
    pub(super) virtual_time: u32,
    /// What the sender's receipt is called; zero for none.
    pub(super) receipt: u32,
    /// Datagram: its bytes. Partial: the parts that arrived. Sending: the parts that were acknowledged.
    pub(super) count: u32,
    /// Receipt: what became of the message.
    pub(super) outcome: Outcome,
    /// Partial: blocks promised and not taken yet.
    pub(super) promised: u32,
    /// To be sent: when it was queued. Datagram: when it was sent.
    pub(super) since: Instant,
}

impl BlockHeader {
    /// What is kept of a capsule that arrived.
    pub(super) fn received(owner: u16, capsule: &CapsuleHeader) -> Self {
        let split = capsule.split.unwrap_or_default();
        Self {
            owner,
            reliability: capsule.reliability,
            channel: capsule.channel,
            split_id: split.id,
            split_count: split.count,
            split_index: split.index,
            sequence: capsule.sequence,
            order: capsule.order,
            ..Self::default()
        }
    }

    /// The capsule header for `bytes` bytes of payload.
    pub(super) fn capsule(&self, bytes: usize) -> CapsuleHeader {
        let split = Split { count: self.split_count, id: self.split_id, index: self.split_index };
        CapsuleHeader {
            reliability: self.reliability,
            bits: u16::try_from(bytes * 8).unwrap_or(u16::MAX),
            reliable: self.reliable,
            sequence: self.sequence,
            order: self.order,
            channel: self.channel,
            split: (self.split_count > 0).then_some(split),
        }
    }

    pub(super) const fn header_size(&self) -> usize {
        CapsuleHeader::size(self.reliability, self.split_count > 0)
    }

    /// Whether the message has a place in its channel. A receipt reliability is never on the wire of a correct sender;
    /// the original delivers it at once.
    pub(super) const fn has_place(&self) -> bool {
        self.reliability.has_channel() && !self.reliability.has_receipt()
    }

    /// The receipt that the header stands for.
    pub(crate) fn receipt(&self) -> Option<(Receipt, Outcome)> {
        (self.role == Role::Receipt).then_some((Receipt(self.receipt), self.outcome))
    }

    pub(crate) fn delivery(&self) -> Delivery {
        Delivery {
            reliability: self.reliability,
            channel: Channel::new(self.channel).unwrap_or_default(),
            priority: Priority::default(),
        }
    }
}

/// The keys of the index. Different things may share a key; the role and the owner tell them apart.
pub(super) mod key {
    use crate::serial::U24;

    const fn of(owner: u16, high: u16, low: u32) -> u64 {
        (owner as u64) << 48 | (high as u64) << 32 | low as u64
    }

    pub(in super::super) const fn datagram(owner: u16, number: U24) -> u64 {
        of(owner, 0, number.get())
    }

    pub(in super::super) const fn partial(owner: u16, split_id: u16) -> u64 {
        of(owner, split_id, u32::MAX)
    }

    pub(in super::super) const fn sending(owner: u16, split_id: u16) -> u64 {
        of(owner, split_id, u32::MAX - 1)
    }

    pub(in super::super) const fn part(owner: u16, split_id: u16, index: u32) -> u64 {
        of(owner, split_id, index)
    }
}
