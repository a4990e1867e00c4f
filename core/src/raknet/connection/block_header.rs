//! What a connection borrows from its peer for a call, and what it keeps in the pool there beside the bytes of a message.

use crate::endpoint::{self, Outcome, Receipt};
use crate::raknet::config::{RakNet, SEQUENCING};
use crate::raknet::delivery::{Channel, Delivery, Priority, Reliability};
use crate::raknet::wire::capsule::{CapsuleHeader, Split};
use crate::serial::U24;
use crate::time::Instant;

/// What a connection borrows from its peer for the time of one call.
pub(crate) type Context<'x, 'a> = endpoint::Context<'x, 'a, RakNet>;

/// What the application is told at the end.
pub(super) type Ending = endpoint::Ending<RakNet>;

/// The header of the first block of a message: one variant for each role that the message can have.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum BlockHeader {
    /// Bytes that are no message of a connection, such as the state of channels or a password.
    #[default]
    Raw,
    /// A message to send, or a part of one, and how far it got.
    Outgoing(OutgoingMessage, SendStatus),
    /// The record of a message that is sent in parts.
    SplitSend(SplitSend),
    /// What became of a message, for the application to read.
    Receipt(Receipt, Outcome),
    /// A message that arrived, for the application or until its turn on its channel.
    Received(IncomingMessage),
    /// A part that arrived.
    Part(Part),
    /// The record of a message that arrives in parts.
    Partial(Partial),
}

/// A message to send, or a part of one, as its capsule describes it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OutgoingMessage {
    pub(crate) reliability: Reliability,
    pub(crate) channel: u8,
    #[cfg(feature = "splitting")]
    split_id: u16,
    /// How many parts the message has; zero for a message that is whole.
    #[cfg(feature = "splitting")]
    split_count: u32,
    #[cfg(feature = "splitting")]
    split_index: u32,
    /// The reliable message number; valid once the message was sent.
    pub(crate) reliable: U24,
    pub(crate) sequence: U24,
    pub(crate) order: U24,
    /// The number of the sender's receipt; zero for none.
    pub(crate) receipt: u32,
}

/// How far a message to send got.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SendStatus {
    /// It waits in a queue, or is in flight behind the first message of its datagram.
    Queued {
        /// Its virtual finish time in the weighted fair queueing of priorities.
        virtual_time: u32,
        queued_at: Instant,
    },
    /// It is the first message of a datagram in flight; the others hang on its block.
    InFlight {
        /// The slot of the connection.
        owner: u16,
        number: U24,
        bytes: u32,
        sent_at: Instant,
        /// Where the messages of the datagram came from.
        source: SendSource,
    },
    /// It is the first message of a datagram that counts as lost.
    Lost {
        owner: u16,
        number: U24,
        bytes: u32,
        sent_at: Instant,
        /// How many datagrams were lost before it (modulo 2^32).
        ordinal: u32,
    },
}

/// A datagram that was sent with at least one message to acknowledge.
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
    /// The number of the sender's receipt; zero for none.
    pub(crate) receipt: u32,
}

/// A message that arrived, or a part of one, as its capsule described it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct IncomingMessage {
    pub(crate) reliability: Reliability,
    pub(crate) channel: u8,
    pub(crate) sequence: U24,
    pub(crate) order: U24,
    /// How many messages that follow it on its channel share its block while it waits for its turn.
    pub(crate) followers: u8,
    /// Its own bytes, if there are any.
    pub(crate) length: u16,
}

/// A part that arrived.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Part {
    /// The slot of the connection.
    pub(crate) owner: u16,
    pub(crate) split_id: u16,
    pub(crate) index: u32,
}

/// The record of a message that arrives in parts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Partial {
    /// The slot of the connection.
    pub(crate) owner: u16,
    pub(crate) message: IncomingMessage,
    pub(crate) split_id: u16,
    pub(crate) parts: u32,
    pub(crate) received: u32,
    /// How many parts, from the first one on, are handed over.
    pub(crate) appended: u32,
    /// Blocks that the pool promised for parts that are still to come.
    pub(crate) promised: u32,
}

impl BlockHeader {
    /// The message to send that this block begins.
    #[inline]
    pub(crate) fn outgoing(&self) -> Option<&OutgoingMessage> {
        let Self::Outgoing(message, _) = self else {
            debug_assert!(false, "not a message to send: {self:?}");
            return None;
        };
        Some(message)
    }

    /// The message that arrived and that this block begins.
    #[inline]
    pub(crate) fn received(&self) -> Option<&IncomingMessage> {
        let Self::Received(message) = self else {
            debug_assert!(false, "not a message that arrived: {self:?}");
            return None;
        };
        Some(message)
    }

    /// The datagram that this block stands for, whether it is in flight or lost.
    #[inline]
    pub(crate) const fn datagram(&self) -> Option<Datagram> {
        if let Self::Outgoing(_, status) = self { status.datagram() } else { None }
    }

    /// The receipt that the header stands for.
    pub(crate) const fn receipt(&self) -> Option<(Receipt, Outcome)> {
        if let Self::Receipt(receipt, outcome) = self { Some((*receipt, *outcome)) } else { None }
    }

    /// How a message that arrived was sent.
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
    /// That of a message that is sent again: it goes before those that wait for their first time.
    pub(crate) const RESEND: Self = Self::Queued { virtual_time: 0, queued_at: Instant::ZERO };

    /// The datagram that the message is the first one of.
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
    /// A message that is whole; `receipt` is zero for none.
    pub(crate) fn new(reliability: Reliability, receipt: u32) -> Self {
        Self { reliability, receipt, ..Self::default() }
    }

    /// The capsule header for `bytes` bytes of payload.
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

    /// Whether this is a part of a longer message.
    pub(crate) const fn is_split(&self) -> bool {
        self.split_count() > 0
    }

    /// Whether no part of the same message follows.
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

    /// Makes this the next part.
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

/// Every message is whole.
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

    /// Whether the message has a place in the order of its channel. No correct sender writes a receipt reliability; the
    /// original delivers such a message at once. Without the feature `sequencing` a sequenced message has no place either.
    pub(crate) const fn is_in_order(&self) -> bool {
        let has_place =
            if SEQUENCING { self.reliability.has_channel() } else { self.reliability.is_ordered() };
        has_place && !self.reliability.has_receipt()
    }

    /// Whether the message is dropped behind a newer one of its channel.
    pub(crate) const fn is_sequenced(&self) -> bool {
        SEQUENCING && self.reliability.is_sequenced()
    }
}

/// The keys of the index. Blocks of different roles or connections may share a key.
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

/// Where the messages of a datagram come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SendSource {
    /// Lost messages first, then new ones by priority.
    #[default]
    Usual,
    /// The lost message with the oldest reliable number.
    OldestLost,
    /// Lost parts of the split message of which a part was acknowledged last.
    PartlyAcknowledged,
    /// The message that was lost last.
    NewestLost,
    /// New messages of one priority.
    New(Priority),
    /// A probe of the sizes that the path carries, which is made when it leaves.
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
