//! The context of a connection during a call, and the header that a connection stores with each message.

use crate::endpoint::{self, Outcome, Receipt};
use crate::raknet::config::{RakNet, SPLITTING};
use crate::raknet::delivery::{Channel, Delivery, Priority, Reliability};
use crate::raknet::wire::datagram::{CapsuleHeader, Split};
use crate::serial::U24;
use crate::time::Instant;

/// The state of the peer that a connection borrows for one call.
pub(crate) type Context<'x, 'a> = endpoint::Context<'x, 'a, RakNet>;

/// The last event of a connection.
pub(super) type Ending = endpoint::Ending<RakNet>;

/// The header in the first block of a message, with one variant for each use of a block.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum BlockHeader {
    /// Bytes that are not a message, such as the state of channels or a password.
    #[default]
    Raw,
    /// An outgoing message or part, and its transmission status.
    Outgoing(OutgoingMessage, SendStatus),
    /// The record of a split message that is being sent.
    SplitSend(SplitSend),
    /// The outcome of a message sent with a receipt, to be read by the application.
    Receipt(Receipt, Outcome),
    /// A received message: for the application, or buffered until it is next on its channel.
    Received(IncomingMessage),
    /// A received part of a split message.
    Part(Part),
    /// The record of a split message that is being received.
    Partial(Partial),
}

/// An outgoing message or part, as described by its capsule.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OutgoingMessage {
    pub(crate) reliability: Reliability,
    pub(crate) channel: u8,
    /// Empty without the feature `full`, like the next two fields, because messages are then never split.
    split_id: [u16; SPLITTING as usize],
    /// The number of parts; 0 if the message is not split.
    split_count: [u32; SPLITTING as usize],
    split_index: [u32; SPLITTING as usize],
    /// The reliable message number; assigned when the message is first sent.
    pub(crate) reliable: U24,
    pub(crate) sequence: U24,
    pub(crate) order: U24,
    /// The number of the receipt; 0 for none.
    pub(crate) receipt: u32,
}

/// The transmission status of an outgoing message.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SendStatus {
    /// In a send queue; or in flight, but not the first message of its datagram.
    Queued {
        /// The virtual finish time, by which weighted fair queueing orders messages.
        virtual_time: u32,
        queued_at: Instant,
    },
    /// The first message of a datagram in flight. The other messages of the datagram are chained to its block.
    InFlight {
        /// The slot of the connection.
        owner: u16,
        number: U24,
        bytes: u32,
        sent_at: Instant,
        /// The send source that the datagram's messages were taken from.
        source: SendSource,
    },
    /// The first message of a datagram that was declared lost.
    Lost {
        owner: u16,
        number: U24,
        bytes: u32,
        sent_at: Instant,
        /// The number of datagrams declared lost before this one, modulo 2^32.
        ordinal: u32,
    },
}

/// A sent datagram with at least one message that needs an acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Datagram {
    /// The slot of the connection.
    pub(crate) owner: u16,
    pub(crate) number: U24,
    pub(crate) bytes: u32,
    pub(crate) sent_at: Instant,
}

/// The record of a split message that is being sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SplitSend {
    /// The slot of the connection.
    pub(crate) owner: u16,
    pub(crate) split_id: u16,
    pub(crate) parts: u32,
    pub(crate) acknowledged: u32,
    /// The number of the receipt; 0 for none.
    pub(crate) receipt: u32,
}

/// A received message or part, as described by its capsule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct IncomingMessage {
    pub(crate) reliability: Reliability,
    pub(crate) channel: u8,
    pub(crate) sequence: U24,
    pub(crate) order: U24,
    /// The number of later messages of the same channel that are packed into this block while buffered.
    pub(crate) followers: u8,
    /// The length of this message in bytes, without the packed messages behind it.
    pub(crate) length: u16,
}

/// A received part of a split message.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Part {
    /// The slot of the connection.
    pub(crate) owner: u16,
    pub(crate) split_id: u16,
    pub(crate) index: u32,
}

/// The record of a split message that is being received.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Partial {
    /// The slot of the connection.
    pub(crate) owner: u16,
    pub(crate) message: IncomingMessage,
    pub(crate) split_id: u16,
    pub(crate) parts: u32,
    pub(crate) received: u32,
    /// The number of leading parts that were appended to the vector.
    pub(crate) appended: u32,
    /// The number of blocks reserved in the pool for parts that have not been received yet.
    pub(crate) promised: u32,
}

impl BlockHeader {
    /// Returns the outgoing message in this block, if it is one.
    #[inline]
    pub(crate) fn outgoing(&self) -> Option<&OutgoingMessage> {
        let Self::Outgoing(message, _) = self else {
            debug_assert!(false, "not a message to send: {self:?}");
            return None;
        };
        Some(message)
    }

    /// Returns the received message in this block, if it is one.
    #[inline]
    pub(crate) fn received(&self) -> Option<&IncomingMessage> {
        let Self::Received(message) = self else {
            debug_assert!(false, "not a message that arrived: {self:?}");
            return None;
        };
        Some(message)
    }

    /// Returns the datagram that begins with this message, whether in flight or lost.
    #[inline]
    pub(crate) const fn datagram(&self) -> Option<Datagram> {
        if let Self::Outgoing(_, status) = self { status.datagram() } else { None }
    }

    /// Returns the receipt in this block, if it is one.
    pub(crate) const fn receipt(&self) -> Option<(Receipt, Outcome)> {
        if let Self::Receipt(receipt, outcome) = self { Some((*receipt, *outcome)) } else { None }
    }

    /// Returns the delivery options of a received message.
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
    /// The status of a message to be retransmitted.
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
    /// Creates a message that is not split; a `receipt` of 0 means none.
    pub(crate) fn new(reliability: Reliability, receipt: u32) -> Self {
        Self { reliability, receipt, ..Self::default() }
    }

    /// Returns the capsule header for a payload of `bytes` bytes.
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

    /// Returns true if this is a part of a split message.
    pub(crate) const fn is_split(&self) -> bool {
        self.split_count() > 0
    }

    /// Returns true if this is the last part of its message, or not split.
    pub(crate) const fn is_last_part(&self) -> bool {
        self.split_count() <= self.split_index() + 1
    }

    /// Makes this the first of `count` parts of the split message `id`.
    pub(crate) const fn split(&mut self, count: u32, id: u16) {
        (self.split_count, self.split_id) = ([count; SPLITTING as usize], [id; SPLITTING as usize]);
    }

    /// Advances to the next part.
    pub(crate) const fn advance_part(&mut self) {
        self.split_index = [self.split_index() + 1; SPLITTING as usize];
    }

    pub(crate) const fn split_id(&self) -> u16 {
        if let Some(id) = self.split_id.first() { *id } else { 0 }
    }

    pub(crate) const fn split_count(&self) -> u32 {
        if let Some(count) = self.split_count.first() { *count } else { 0 }
    }

    pub(crate) const fn split_index(&self) -> u32 {
        if let Some(index) = self.split_index.first() { *index } else { 0 }
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

    /// Returns true if the message is ordered or sequenced on its channel.
    ///
    /// A conforming sender never writes a receipt reliability; C++ RakNet delivers such a message immediately.
    pub(crate) const fn is_in_order(&self) -> bool {
        self.reliability.has_channel() && !self.reliability.has_receipt()
    }

    /// Returns true if the message is dropped after a newer one of its channel was delivered.
    pub(crate) const fn is_sequenced(&self) -> bool {
        self.reliability.is_sequenced()
    }
}

/// The keys of the block index. Blocks of different uses or connections may share a key.
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

/// A source from which messages for the next datagram are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SendSource {
    /// Lost messages first, then new messages by priority.
    #[default]
    Usual,
    /// The lost message with the lowest reliable number.
    OldestLost,
    /// Lost parts of the split message with the latest acknowledged part.
    PartlyAcknowledged,
    /// The message that was declared lost last.
    NewestLost,
    /// New messages of one priority.
    New(Priority),
    /// A path probe, generated when it is sent.
    PathProbe,
}

impl SendSource {
    /// The sources that are probed in rotation while the receiver seems to be blocked.
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
