//! The context of a connection during a call, and the header that it stores with each message.

use crate::endpoint::{self, Outcome, Receipt};
use crate::raknet::config::{RakNet, SEQUENCING};
use crate::raknet::delivery::{Channel, Delivery, Priority, Reliability};
use crate::raknet::wire::datagram::{CapsuleHeader, Split};
use crate::serial::U24;
use crate::time::Instant;

/// The state that a connection borrows from its peer for the duration of one call.
pub(crate) type Context<'x, 'a> = endpoint::Context<'x, 'a, RakNet>;

/// The final event of a connection.
pub(super) type Ending = endpoint::Ending<RakNet>;

/// The header in the first block of a message, with one variant for each role of a message.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum BlockHeader {
    /// Bytes that are not a message of a connection, such as the state of channels or a password.
    #[default]
    Raw,
    /// An outgoing message, or a part of one, and its progress.
    Outgoing(OutgoingMessage, SendStatus),
    /// The record of a message that is sent in parts.
    SplitSend(SplitSend),
    /// The outcome of a message, which the application has not read yet.
    Receipt(Receipt, Outcome),
    /// A received message, for the application or buffered until its turn on its channel.
    Received(IncomingMessage),
    /// A received part.
    Part(Part),
    /// The record of a message that is received in parts.
    Partial(Partial),
}

/// An outgoing message, or a part of one, as its capsule describes it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OutgoingMessage {
    pub(crate) reliability: Reliability,
    pub(crate) channel: u8,
    #[cfg(feature = "splitting")]
    split_id: u16,
    /// The number of parts; zero if the message is not split.
    #[cfg(feature = "splitting")]
    split_count: u32,
    #[cfg(feature = "splitting")]
    split_index: u32,
    /// The reliable message number; valid once the message was sent.
    pub(crate) reliable: U24,
    pub(crate) sequence: U24,
    pub(crate) order: U24,
    /// The number of the sender's receipt; zero if it requested none.
    pub(crate) receipt: u32,
}

/// The progress of an outgoing message.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SendStatus {
    /// It waits in a queue, or is in flight and not the first message of its datagram.
    Queued {
        /// Its virtual finish time in the weighted fair queueing of priorities.
        virtual_time: u32,
        queued_at: Instant,
    },
    /// It is the first message of a datagram in flight; the others are chained to its block.
    InFlight {
        /// The slot of the connection.
        owner: u16,
        number: U24,
        bytes: u32,
        sent_at: Instant,
        /// The source of the messages in the datagram.
        source: SendSource,
    },
    /// It is the first message of a datagram that was declared lost.
    Lost {
        owner: u16,
        number: U24,
        bytes: u32,
        sent_at: Instant,
        /// The number of datagrams declared lost before it, modulo 2^32.
        ordinal: u32,
    },
}

/// A sent datagram with at least one message to acknowledge.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Datagram {
    /// The slot of the connection.
    pub(crate) owner: u16,
    pub(crate) number: U24,
    pub(crate) bytes: u32,
    pub(crate) sent_at: Instant,
}

/// The record of a message that is sent in parts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SplitSend {
    /// The slot of the connection.
    pub(crate) owner: u16,
    pub(crate) split_id: u16,
    pub(crate) parts: u32,
    pub(crate) acknowledged: u32,
    /// The number of the sender's receipt; zero if it requested none.
    pub(crate) receipt: u32,
}

/// A received message, or a part of one, as its capsule described it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct IncomingMessage {
    pub(crate) reliability: Reliability,
    pub(crate) channel: u8,
    pub(crate) sequence: U24,
    pub(crate) order: U24,
    /// The number of following messages on its channel that share its block while it waits for its turn.
    pub(crate) followers: u8,
    /// The length of its own bytes.
    pub(crate) length: u16,
}

/// A received part.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Part {
    /// The slot of the connection.
    pub(crate) owner: u16,
    pub(crate) split_id: u16,
    pub(crate) index: u32,
}

/// The record of a message that is received in parts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Partial {
    /// The slot of the connection.
    pub(crate) owner: u16,
    pub(crate) message: IncomingMessage,
    pub(crate) split_id: u16,
    pub(crate) parts: u32,
    pub(crate) received: u32,
    /// The number of parts, from the first one on, that were appended to a vector.
    pub(crate) appended: u32,
    /// Blocks reserved in the pool for parts that have not arrived.
    pub(crate) promised: u32,
}

impl BlockHeader {
    /// Returns the outgoing message that begins in this block.
    #[inline]
    pub(crate) fn outgoing(&self) -> Option<&OutgoingMessage> {
        let Self::Outgoing(message, _) = self else {
            debug_assert!(false, "not a message to send: {self:?}");
            return None;
        };
        Some(message)
    }

    /// Returns the received message that begins in this block.
    #[inline]
    pub(crate) fn received(&self) -> Option<&IncomingMessage> {
        let Self::Received(message) = self else {
            debug_assert!(false, "not a message that arrived: {self:?}");
            return None;
        };
        Some(message)
    }

    /// Returns the datagram that this block represents, whether it is in flight or lost.
    #[inline]
    pub(crate) const fn datagram(&self) -> Option<Datagram> {
        if let Self::Outgoing(_, status) = self { status.datagram() } else { None }
    }

    /// Returns the receipt that the header represents.
    pub(crate) const fn receipt(&self) -> Option<(Receipt, Outcome)> {
        if let Self::Receipt(receipt, outcome) = self { Some((*receipt, *outcome)) } else { None }
    }

    /// Returns the delivery of a received message.
    pub(crate) fn delivery(&self) -> Delivery {
        let Some(message) = self.received() else { return Delivery::default() };
        Delivery {
            reliability: message.reliability,
            channel: Channel::new(message.channel).unwrap_or_default(),
            priority: Priority::default(),
        }
    }
}

impl SendStatus {
    /// The status of a retransmitted message, which precedes messages that are sent for the first time.
    pub(crate) const RESEND: Self = Self::Queued { virtual_time: 0, queued_at: Instant::ZERO };

    /// Returns the datagram that begins with this message.
    #[inline]
    const fn datagram(&self) -> Option<Datagram> {
        match *self {
            Self::Queued { .. } => None,
            Self::InFlight { owner, number, bytes, sent_at, .. }
            | Self::Lost { owner, number, bytes, sent_at, .. } => {
                Some(Datagram { owner, number, bytes, sent_at })
            }
        }
    }
}

impl OutgoingMessage {
    /// Creates a message that is not split; a `receipt` of zero means none.
    pub(crate) fn new(reliability: Reliability, receipt: u32) -> Self {
        Self { reliability, receipt, ..Self::default() }
    }

    /// Returns the capsule header for `bytes` bytes of payload.
    pub(crate) fn capsule(&self, bytes: usize) -> CapsuleHeader {
        let split = Split { count: self.split_count(), id: self.split_id(), index: self.split_index() };
        CapsuleHeader {
            reliability: self.reliability,
            bits: u16::try_from(bytes * 8).unwrap_or(u16::MAX),
            reliable: self.reliable,
            sequence: self.sequence,
            order: self.order,
            channel: self.channel,
            split: self.is_split().then_some(split),
        }
    }

    pub(crate) const fn header_size(&self) -> usize {
        CapsuleHeader::size(self.reliability, self.is_split())
    }

    /// Returns true if this is a part of a longer message.
    pub(crate) const fn is_split(&self) -> bool {
        self.split_count() > 0
    }

    /// Returns true if no part of the same message follows.
    pub(crate) const fn is_last_part(&self) -> bool {
        self.split_count() <= self.split_index() + 1
    }
}

#[cfg(feature = "splitting")]
impl OutgoingMessage {
    /// Makes this the first of `count` parts of the message with this id.
    pub(crate) const fn split(&mut self, count: u32, id: u16) {
        (self.split_count, self.split_id) = (count, id);
    }

    /// Advances to the next part.
    pub(crate) const fn advance_part(&mut self) {
        self.split_index += 1;
    }

    pub(crate) const fn split_id(&self) -> u16 {
        self.split_id
    }

    pub(crate) const fn split_count(&self) -> u32 {
        self.split_count
    }

    pub(crate) const fn split_index(&self) -> u32 {
        self.split_index
    }
}

/// Without the feature `splitting` no message is split.
#[cfg(not(feature = "splitting"))]
impl OutgoingMessage {
    pub(crate) const fn split(&mut self, _: u32, _: u16) {}

    pub(crate) const fn advance_part(&mut self) {}

    pub(crate) const fn split_id(&self) -> u16 {
        0
    }

    pub(crate) const fn split_count(&self) -> u32 {
        0
    }

    pub(crate) const fn split_index(&self) -> u32 {
        0
    }
}

impl IncomingMessage {
    pub(crate) const fn of(capsule: &CapsuleHeader) -> Self {
        Self {
            reliability: capsule.reliability,
            channel: capsule.channel,
            sequence: capsule.sequence,
            order: capsule.order,
            followers: 0,
            length: 0,
        }
    }

    /// Returns true if the message has a position in the order of its channel.
    ///
    /// No correct sender writes a receipt reliability; the original delivers such a message immediately. Without the
    /// feature `sequencing` a sequenced message has no position either.
    pub(crate) const fn is_in_order(&self) -> bool {
        let has_place =
            if SEQUENCING { self.reliability.has_channel() } else { self.reliability.is_ordered() };
        has_place && !self.reliability.has_receipt()
    }

    /// Returns true if the message is dropped after a newer one of its channel.
    pub(crate) const fn is_sequenced(&self) -> bool {
        SEQUENCING && self.reliability.is_sequenced()
    }
}

/// The keys of the message index. Blocks of different roles or connections may share a key.
pub(crate) mod key {
    use crate::serial::U24;

    const fn of(owner: u16, high: u16, low: u32) -> u64 {
        (owner as u64) << 48 | (high as u64) << 32 | low as u64
    }

    pub(crate) const fn datagram(owner: u16, number: U24) -> u64 {
        of(owner, 0, number.get())
    }

    pub(crate) const fn partial(owner: u16, split_id: u16) -> u64 {
        of(owner, split_id, u32::MAX)
    }

    pub(crate) const fn split_send(owner: u16, split_id: u16) -> u64 {
        of(owner, split_id, u32::MAX - 1)
    }

    pub(crate) const fn part(owner: u16, split_id: u16, index: u32) -> u64 {
        of(owner, split_id, index)
    }
}

/// The source from which the messages of a datagram are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SendSource {
    /// Lost messages first, then new ones by priority.
    #[default]
    Usual,
    /// The lost message with the oldest reliable number.
    OldestLost,
    /// Lost parts of the split message that last had a part acknowledged.
    PartlyAcknowledged,
    /// The message that was lost last.
    NewestLost,
    /// New messages of one priority.
    New(Priority),
    /// A path probe, which is created when it is sent.
    PathProbe,
}

impl SendSource {
    /// The sources that are tried in turn while the receiver seems to be blocked.
    pub(crate) const PROBED: [Self; 7] = [
        Self::New(Priority::Immediate),
        Self::OldestLost,
        Self::New(Priority::High),
        Self::PartlyAcknowledged,
        Self::New(Priority::Medium),
        Self::NewestLost,
        Self::New(Priority::Low),
    ];
}
