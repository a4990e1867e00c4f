//! The delivery options of a message: reliability, ordering channel and priority.

/// The reliability of a message (docs/raknet.md#capsules).
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
    /// Sent once: it may be lost or reordered, but is never duplicated.
    Unreliable,
    /// Sent once; the receiver drops it if a newer message of its channel was delivered before.
    UnreliableSequenced,
    /// Delivered exactly once, in any order.
    Reliable,
    /// Delivered exactly once, in the order of sending on its channel.
    #[default]
    ReliableOrdered,
    /// Retransmitted until acknowledged; the receiver drops it if a newer message of its channel was delivered
    /// before.
    ReliableSequenced,
    /// [`Unreliable`](Self::Unreliable) with a receipt. On the wire it is 0 (`Unreliable`).
    UnreliableWithReceipt,
    /// [`Reliable`](Self::Reliable) with a receipt. On the wire it is 2 (`Reliable`).
    ReliableWithReceipt,
    /// [`ReliableOrdered`](Self::ReliableOrdered) with a receipt. On the wire it is 3 (`ReliableOrdered`).
    ReliableOrderedWithReceipt,
}

impl Reliability {
    /// Returns the reliability with this number in RakNet's `PacketReliability`, or `None` above 7. The variants are
    /// declared in this order.
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

    /// Returns the reliability for the three bits in a capsule's flags.
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

    /// Returns true if the message is retransmitted until it is acknowledged.
    #[must_use]
    pub const fn is_reliable(self) -> bool {
        !matches!(self, Self::Unreliable | Self::UnreliableSequenced | Self::UnreliableWithReceipt)
    }

    /// Returns true if the receiver drops the message after delivery of a newer one of its channel.
    #[must_use]
    pub const fn is_sequenced(self) -> bool {
        matches!(self, Self::UnreliableSequenced | Self::ReliableSequenced)
    }

    /// Returns true if the message is delivered only after all earlier ones of its channel.
    #[must_use]
    pub const fn is_ordered(self) -> bool {
        matches!(self, Self::ReliableOrdered | Self::ReliableOrderedWithReceipt)
    }

    /// Returns true if the message uses an ordering channel.
    #[must_use]
    pub const fn has_channel(self) -> bool {
        self.is_sequenced() || self.is_ordered()
    }

    /// Returns true if [`Event::Receipt`](super::Event::Receipt) reports the outcome of the message.
    #[must_use]
    pub const fn has_receipt(self) -> bool {
        matches!(
            self,
            Self::UnreliableWithReceipt | Self::ReliableWithReceipt | Self::ReliableOrderedWithReceipt
        )
    }

    /// Returns true if a capsule with this wire value has a reliable message number.
    ///
    /// The receipt variants have none; a conforming sender never writes them.
    pub(crate) const fn has_number_on_wire(self) -> bool {
        matches!(self, Self::Reliable | Self::ReliableOrdered | Self::ReliableSequenced)
    }

    /// Returns the reliability on the wire: parts of a split message are always reliable, and receipts are local.
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
/// Channels are independent: a message waits only for earlier messages of its own channel.
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
    /// The number of channels, 32.
    pub const COUNT: usize = 32;

    /// Returns the channel with this number, or `None` from 32 up.
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

/// The priority of a message in the send queue (docs/raknet.md#priorities).
///
/// Under load, several messages of each priority are sent for each message of the next lower priority. Low priorities
/// are delayed but never starved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Priority {
    /// About 5 messages for each message of high priority.
    Immediate,
    /// About 2.8 messages for each message of medium priority.
    High,
    /// About 2.5 messages for each message of low priority.
    #[default]
    Medium,
    /// The lowest priority.
    Low,
}

impl Priority {
    /// The number of priorities.
    pub const COUNT: usize = 4;
    /// All priorities, highest first.
    pub(crate) const ALL: [Self; Self::COUNT] = [Self::Immediate, Self::High, Self::Medium, Self::Low];

    /// Returns the priority with this number in RakNet's `PacketPriority`: 0 is [`Immediate`](Self::Immediate), 3 is
    /// [`Low`](Self::Low).
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

/// The delivery options of a message.
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
    /// The reliability.
    pub reliability: Reliability,
    /// The ordering channel; ignored for messages that are neither ordered nor sequenced.
    pub channel: Channel,
    /// The priority in the send queue.
    pub priority: Priority,
}

impl Delivery {
    /// [`Reliability::Unreliable`]: sent once, not ordered.
    pub const UNRELIABLE: Self = Self::new(Reliability::Unreliable);
    /// [`Reliability::UnreliableSequenced`] on channel 0: sent once, and outdated messages are dropped.
    pub const UNRELIABLE_SEQUENCED: Self = Self::new(Reliability::UnreliableSequenced);
    /// [`Reliability::Reliable`]: delivered exactly once, in any order.
    pub const RELIABLE: Self = Self::new(Reliability::Reliable);
    /// [`Reliability::ReliableOrdered`] on channel 0: delivered exactly once, in the order in which they were sent.
    pub const RELIABLE_ORDERED: Self = Self::new(Reliability::ReliableOrdered);
    /// [`Reliability::ReliableSequenced`] on channel 0: retransmitted, and outdated messages are dropped.
    pub const RELIABLE_SEQUENCED: Self = Self::new(Reliability::ReliableSequenced);

    /// Creates delivery options with this reliability, channel 0 and medium priority.
    #[must_use]
    pub const fn new(reliability: Reliability) -> Self {
        Self { reliability, channel: Channel::ZERO, priority: Priority::Medium }
    }

    /// Returns these options with another channel.
    #[must_use]
    pub const fn on(self, channel: Channel) -> Self {
        Self { channel, ..self }
    }

    /// Returns these options with another priority.
    #[must_use]
    pub const fn with_priority(self, priority: Priority) -> Self {
        Self { priority, ..self }
    }
}
