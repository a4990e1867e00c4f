//! The delivery of a message: reliability, ordering channel and priority.

/// The delivery guarantee of a message (docs/raknet.md#capsules).
///
/// ```
/// use rakwire::raknet::Reliability;
///
/// assert!(Reliability::ReliableOrdered.is_reliable());
/// assert!(!Reliability::UnreliableSequenced.is_reliable());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Reliability {
    /// Sent once: may be lost or arrive out of order, but never twice.
    Unreliable,
    /// Sent once; dropped if it is older than the newest message delivered on its channel.
    UnreliableSequenced,
    /// Arrives once, in any order.
    Reliable,
    /// Arrives once, in the order sent on its channel.
    #[default]
    ReliableOrdered,
    /// Retransmitted until it arrives; dropped if a newer one on its channel was delivered before.
    ReliableSequenced,
    /// As [`Unreliable`](Self::Unreliable), with a receipt. Never on the wire: travels as 0.
    UnreliableWithReceipt,
    /// As [`Reliable`](Self::Reliable), with a receipt. Never on the wire: travels as 2.
    ReliableWithReceipt,
    /// As [`ReliableOrdered`](Self::ReliableOrdered), with a receipt. Never on the wire: travels as 3.
    ReliableOrderedWithReceipt,
}

impl Reliability {
    /// Returns the reliability with this number (0 to 7), as in RakNet's `PacketReliability` and in the order above.
    ///
    /// ```
    /// use rakwire::raknet::Reliability;
    ///
    /// assert_eq!(Reliability::from_number(3), Some(Reliability::ReliableOrdered));
    /// assert_eq!(Reliability::from_number(8), None);
    /// ```
    #[must_use]
    pub const fn from_number(number: u8) -> Option<Self> {
        if number <= 7 { Some(Self::from_wire(number)) } else { None }
    }

    /// Returns the reliability that the flags of a capsule encode as `bits` (0 to 7).
    pub(crate) const fn from_wire(bits: u8) -> Self {
        match bits & 7 {
            0 => Self::Unreliable,
            1 => Self::UnreliableSequenced,
            2 => Self::Reliable,
            3 => Self::ReliableOrdered,
            4 => Self::ReliableSequenced,
            5 => Self::UnreliableWithReceipt,
            6 => Self::ReliableWithReceipt,
            _ => Self::ReliableOrderedWithReceipt,
        }
    }

    pub(crate) const fn to_wire(self) -> u8 {
        self as u8
    }

    /// Returns true if a message is retransmitted until it is acknowledged.
    #[must_use]
    pub const fn is_reliable(self) -> bool {
        !matches!(self, Self::Unreliable | Self::UnreliableSequenced | Self::UnreliableWithReceipt)
    }

    /// Returns true if a message is dropped when a newer one of its channel was delivered.
    #[must_use]
    pub const fn is_sequenced(self) -> bool {
        matches!(self, Self::UnreliableSequenced | Self::ReliableSequenced)
    }

    /// Returns true if a message waits for those sent before it on its channel.
    #[must_use]
    pub const fn is_ordered(self) -> bool {
        matches!(self, Self::ReliableOrdered | Self::ReliableOrderedWithReceipt)
    }

    /// Returns true if the channel of a message is significant.
    #[must_use]
    pub const fn has_channel(self) -> bool {
        self.is_sequenced() || self.is_ordered()
    }

    /// Returns true if the sender is notified of the outcome of a message.
    #[must_use]
    pub const fn has_receipt(self) -> bool {
        matches!(
            self,
            Self::UnreliableWithReceipt | Self::ReliableWithReceipt | Self::ReliableOrderedWithReceipt
        )
    }

    /// Returns true if a capsule with this wire value carries a reliable message number.
    ///
    /// The receipt kinds, which no correct sender writes, carry none.
    pub(crate) const fn has_number_on_wire(self) -> bool {
        matches!(self, Self::Reliable | Self::ReliableOrdered | Self::ReliableSequenced)
    }

    /// Returns the value on the wire: parts of a split message are always reliable, and receipts are local.
    pub(crate) const fn on_wire(self, is_split: bool) -> Self {
        match (self, is_split) {
            (Self::Unreliable | Self::UnreliableWithReceipt, false) => Self::Unreliable,
            (Self::UnreliableSequenced, false) => Self::UnreliableSequenced,
            (Self::Unreliable | Self::UnreliableWithReceipt, true)
            | (Self::Reliable | Self::ReliableWithReceipt, _) => Self::Reliable,
            (Self::UnreliableSequenced, true) | (Self::ReliableSequenced, _) => Self::ReliableSequenced,
            (Self::ReliableOrdered | Self::ReliableOrderedWithReceipt, _) => Self::ReliableOrdered,
        }
    }
}

/// An ordering channel, 0 to 31.
///
/// Channels are independent: a message waits only for earlier ones on its own channel.
///
/// ```
/// use rakwire::raknet::Channel;
///
/// assert!(Channel::new(31).is_some());
/// assert!(Channel::new(32).is_none());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Channel(u8);

impl Channel {
    /// Channel 0.
    pub const ZERO: Self = Self(0);
    /// The number of channels.
    pub const COUNT: usize = 32;

    /// Returns the channel with this number, if it is below 32.
    #[must_use]
    pub const fn new(number: u8) -> Option<Self> {
        if (number as usize) < Self::COUNT { Some(Self(number)) } else { None }
    }

    /// Returns the number of the channel.
    #[must_use]
    pub const fn number(self) -> u8 {
        self.0
    }
}

/// The order of messages when the path has no room for all (docs/raknet.md#priorities).
///
/// Under load each priority gets several times the share of the next. Priorities delay messages but never starve them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Priority {
    /// About 5 messages for each of high priority.
    Immediate,
    /// About 2.8 messages for each of medium priority.
    High,
    /// About 2.5 messages for each of low priority.
    #[default]
    Medium,
    /// The remaining share.
    Low,
}

impl Priority {
    /// The number of priorities.
    pub const COUNT: usize = 4;
    /// All priorities, the highest first.
    pub(crate) const ALL: [Self; Self::COUNT] = [Self::Immediate, Self::High, Self::Medium, Self::Low];

    /// Returns the priority with this number: 0 for [`Immediate`](Self::Immediate) to 3 for [`Low`](Self::Low), as in
    /// RakNet's `PacketPriority`.
    ///
    /// ```
    /// use rakwire::raknet::Priority;
    ///
    /// assert_eq!(Priority::from_number(0), Some(Priority::Immediate));
    /// assert_eq!(Priority::from_number(4), None);
    /// ```
    #[must_use]
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::Immediate),
            1 => Some(Self::High),
            2 => Some(Self::Medium),
            3 => Some(Self::Low),
            _ => None,
        }
    }

    pub(crate) const fn index(self) -> usize {
        self as usize
    }
}

/// The delivery options of one message.
///
/// ```
/// use rakwire::raknet::{Channel, Delivery, Priority, Reliability};
///
/// let chat = Delivery::RELIABLE_ORDERED.on(Channel::new(3).ok_or("a channel below 32")?);
/// let input = Delivery::UNRELIABLE_SEQUENCED.with_priority(Priority::Immediate);
/// assert_eq!(chat.reliability, Reliability::ReliableOrdered);
/// assert_eq!(input.channel, Channel::ZERO);
/// # Ok::<(), &str>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Delivery {
    /// The delivery guarantee.
    pub reliability: Reliability,
    /// The ordering channel; ignored for messages that are neither ordered nor sequenced.
    pub channel: Channel,
    /// The priority among waiting messages.
    pub priority: Priority,
}

impl Delivery {
    /// Sent once, on no channel.
    pub const UNRELIABLE: Self = Self::new(Reliability::Unreliable);
    /// Sent once; only the newest counts.
    pub const UNRELIABLE_SEQUENCED: Self = Self::new(Reliability::UnreliableSequenced);
    /// Arrives once, in any order.
    pub const RELIABLE: Self = Self::new(Reliability::Reliable);
    /// Arrives once, in order.
    pub const RELIABLE_ORDERED: Self = Self::new(Reliability::ReliableOrdered);
    /// Retransmitted; only the newest counts.
    pub const RELIABLE_SEQUENCED: Self = Self::new(Reliability::ReliableSequenced);

    /// Returns a delivery of this reliability on channel 0 with medium priority.
    #[must_use]
    pub const fn new(reliability: Reliability) -> Self {
        Self { reliability, channel: Channel::ZERO, priority: Priority::Medium }
    }

    /// Returns the same delivery on another channel.
    #[must_use]
    pub const fn on(self, channel: Channel) -> Self {
        Self { channel, ..self }
    }

    /// Returns the same delivery with another priority.
    #[must_use]
    pub const fn with_priority(self, priority: Priority) -> Self {
        Self { priority, ..self }
    }
}
