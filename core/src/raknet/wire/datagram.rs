//! Datagram headers, capsules, acknowledgement ranges (docs/raknet.md#datagrams) and size arithmetic
//! (docs/raknet.md#sizes).
//!
//! | bit | mask | data | acknowledgement | negative acknowledgement |
//! |---|---|---|---|---|
//! | 7 | 0x80 | 1 | 1 | 1 |
//! | 6 | 0x40 | 0 | 1 | 0 |
//! | 5 | 0x20 | 0 | arrival speed follows | 1 |
//! | 4 | 0x10 | packet pair | 0 | 0 |
//! | 3 | 0x08 | continuous send | 0 | 0 |
//! | 2 | 0x04 | slow start | 0 | 0 |
//!
//! A data datagram consists of the first byte, the datagram number (u24), and capsules to the end. An acknowledgement
//! consists of the first byte, an f32 if bit 5 is set, a count (u16), and records. Bits 4..0 of an acknowledgement's
//! first byte are ignored, and written as zero.
//!
//! A capsule is a message, or a part of a split message, inside a data datagram (docs/raknet.md#capsules). Its
//! header:
//!
//! | field | bytes | present |
//! |---|---|---|
//! | flags: reliability (bits 7..5), split (bit 4) | 1 | always |
//! | length in **bits** | u16 | always, never 0 |
//! | reliable message number | u24 | reliable (2, 3, 4) |
//! | sequencing index | u24 | sequenced (1, 4) |
//! | ordering index, channel | u24, u8 | ordered or sequenced (1, 3, 4, 7) |
//! | split count, split id, split index | u32, u16, u32 | split |
//! | payload | ceil(bits / 8) | always |
//!
//! Bits 3..0 of the flags are ignored, and written as zero. Reliabilities 5 to 7 (with receipt) are never sent. In
//! received capsules, reliability 7 has an ordering index and a channel, and none of the three has a message number.

use super::{IP_UDP_OVERHEAD, MIN_MTU, Wire};
use crate::cursor::{Source, WireError, Writer};
use crate::raknet::delivery::{Channel, Reliability};
use crate::serial::U24;

/// Bit 7 of the first byte: set in every datagram of a connection, clear in offline messages.
pub const VALID: u8 = 0x80;
const ACK: u8 = 0x40;
const NACK_OR_SPEED: u8 = 0x20;
/// The datagram is one of a packet pair that measures the path; a hint that this crate ignores.
///
/// It is defined for tools that display datagrams.
pub const PACKET_PAIR: u8 = 0x10;
/// The sender has more data queued; a hint that this crate ignores.
pub const CONTINUOUS_SEND: u8 = 0x08;
/// The sender is in slow start; a hint that this crate ignores.
pub const SLOW_START: u8 = 0x04;

/// The header size of a data datagram in bytes.
pub const DATA_HEADER: usize = 4;
/// The header size of an acknowledgement in bytes, before its first record.
pub const ACK_HEADER: usize = 3;
/// The maximum size of a record in bytes.
pub const MAX_RECORD: usize = 7;

/// The header of a datagram.
///
/// ```
/// use rakwire::wire::datagram::DatagramHeader;
/// use rakwire::wire::{Reader, Wire};
///
/// let header = DatagramHeader::read(&mut Reader::new(&[0xC0, 0, 1]))?;
/// assert_eq!(header, DatagramHeader::Ack { arrival_speed: None, records: 1 });
/// # Ok::<(), rakwire::wire::WireError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DatagramHeader {
    /// A data datagram; capsules follow.
    Data {
        /// The lower five bits of the first byte: hints.
        hints: u8,
        /// The datagram number; a retransmission has a new one.
        number: U24,
    },
    /// An acknowledgement; records of received datagrams follow.
    Ack {
        /// The arrival rate in bytes per microsecond, sent only by an old variant of the protocol.
        arrival_speed: Option<f32>,
        /// The number of records that follow.
        records: u16,
    },
    /// A negative acknowledgement; records of missing datagrams follow.
    Nack {
        /// The number of records that follow.
        records: u16,
    },
}

impl<'a> Wire<'a> for DatagramHeader {
    #[inline]
    fn read<S: Source<'a>>(source: &mut S) -> Result<Self, WireError> {
        let flags = source.u8("flags")?;
        if flags & VALID == 0 {
            return Err(WireError::UnknownId);
        }
        if flags & ACK != 0 {
            let arrival_speed =
                if flags & NACK_OR_SPEED != 0 { Some(source.f32("arrival speed")?) } else { None };
            return Ok(Self::Ack { arrival_speed, records: source.u16("record count")? });
        }
        if flags & NACK_OR_SPEED != 0 {
            return Ok(Self::Nack { records: source.u16("record count")? });
        }
        Ok(Self::Data { hints: flags & 0x1F, number: source.u24("datagram number")? })
    }

    fn write(&self, writer: &mut Writer<'_>) -> Result<(), WireError> {
        match *self {
            Self::Data { hints, number } => {
                writer.u8(VALID | hints & 0x1F)?;
                writer.u24(number)
            }
            Self::Ack { arrival_speed: None, records } => {
                writer.u8(VALID | ACK)?;
                writer.u16(records)
            }
            Self::Ack { arrival_speed: Some(speed), records } => {
                writer.u8(VALID | ACK | NACK_OR_SPEED)?;
                writer.u32(speed.to_bits())?;
                writer.u16(records)
            }
            Self::Nack { records } => {
                writer.u8(VALID | NACK_OR_SPEED)?;
                writer.u16(records)
            }
        }
    }
}

/// A range of datagram numbers: flag (u8, non-zero for a single number), first (u24), and last (u24) if the flag is
/// zero.
///
/// Receivers compare the numbers as plain integers, so a range that wraps is written as two records.
///
/// ```
/// use rakwire::U24;
/// use rakwire::wire::datagram::Record;
/// use rakwire::wire::{Reader, Wire};
///
/// let record = Record::read(&mut Reader::new(&[0, 1, 0, 0, 2, 0, 0]))?;
/// assert_eq!(record, Record { first: U24::new(1), last: U24::new(2) });
/// # Ok::<(), rakwire::wire::WireError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// The first number of the range.
    pub first: U24,
    /// The last number of the range, not below the first.
    pub last: U24,
}

impl Record {
    /// Returns true if the range includes a number at or after `next`.
    pub(crate) const fn reaches(self, next: U24) -> bool {
        !self.first.is_older_than(next) || next.since(self.first) <= self.last.since(self.first)
    }
}

impl<'a> Wire<'a> for Record {
    fn read<S: Source<'a>>(source: &mut S) -> Result<Self, WireError> {
        let single = source.u8("single")? != 0;
        let first = source.u24("first")?;
        let last = if single { first } else { source.u24("last")? };
        if last.get() < first.get() {
            return Err(WireError::BadRange);
        }
        Ok(Self { first, last })
    }

    fn write(&self, writer: &mut Writer<'_>) -> Result<(), WireError> {
        writer.u8(u8::from(self.first == self.last))?;
        writer.u24(self.first)?;
        if self.first == self.last { Ok(()) } else { writer.u24(self.last) }
    }
}

/// The kind of a datagram according to its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FirstByte {
    Connected,
    Offline,
}

impl FirstByte {
    pub(crate) const fn classify(datagram: &[u8]) -> Option<Self> {
        match datagram {
            [] | [_] | [_, _] => None,
            [first, ..] if *first & VALID != 0 => Some(Self::Connected),
            [..] => Some(Self::Offline),
        }
    }
}

/// The header size in bytes that C++ RakNet assumes in its size arithmetic; the actual header has four bytes.
const COUNTED_HEADER: usize = 9;

/// The MTUs to which a connection may be reduced.
///
/// 1,200 is `BASE_PLPMTU` of RFC 8899 section 5.1.2, which fits IPv6 links of 1,280 bytes; [`MIN_MTU`] is the minimum
/// MTU of RakNet. There is no step in between: a message split for an intermediate MTU could never be delivered over a
/// path with a smaller MTU.
const SMALLER_MTUS: [u16; 2] = [1_200, MIN_MTU];

/// The size arithmetic at the current path MTU, which may be smaller than the negotiated MTU.
///
/// Packet protection adds `overhead` bytes to each datagram (0 in plain connections).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sizes {
    mtu: u16,
    agreed: u16,
    overhead: u16,
}

impl Sizes {
    pub(crate) const fn new(mtu: u16, overhead: u16) -> Self {
        Self { mtu, agreed: mtu, overhead }
    }

    /// Returns the sizes with another negotiated MTU.
    pub(crate) const fn with_mtu(self, mtu: u16) -> Self {
        Self::new(mtu, self.overhead)
    }

    /// Returns the sizes at the negotiated MTU, which the remote peer uses.
    pub(crate) const fn agreed(self) -> Self {
        Self::new(self.agreed, self.overhead)
    }

    pub(crate) const fn mtu(self) -> u16 {
        self.mtu
    }

    /// Returns the sizes at the next smaller MTU, or `None` at the smallest.
    pub(crate) fn smaller(self) -> Option<Self> {
        SMALLER_MTUS.into_iter().find(|mtu| *mtu < self.mtu).map(|mtu| Self { mtu, ..self })
    }

    /// Returns the maximum size of a plain datagram without IP and UDP headers; 0 before an MTU is negotiated.
    pub(crate) const fn datagram(self) -> usize {
        self.mtu.saturating_sub(IP_UDP_OVERHEAD).saturating_sub(self.overhead) as usize
    }

    /// Returns the number of bytes for capsules in a datagram. As in C++ RakNet, the overhead is subtracted twice.
    pub(crate) const fn body(self) -> usize {
        self.datagram().saturating_sub(COUNTED_HEADER + self.overhead as usize)
    }

    /// Returns the maximum size of a data datagram in bytes.
    pub(crate) const fn data_datagram(self) -> usize {
        DATA_HEADER + self.body()
    }

    /// Returns the maximum length of an unsplit message, and of each part of a split message.
    pub(crate) const fn part(self) -> usize {
        self.body().saturating_sub(MAX_HEADER)
    }

    /// Returns the maximum length of a part from another implementation, for which a receiver reserves memory.
    pub(crate) const fn foreign_part(self) -> usize {
        self.agreed().datagram().saturating_sub(DATA_HEADER)
    }
}

const SPLIT: u8 = 0x10;
/// The number of ordering channels; a capsule with a higher channel makes the rest of its datagram malformed.
pub const CHANNELS: u8 = Channel::COUNT as u8;
/// The size of the longest capsule header (reliable sequenced, split) in bytes.
///
/// All size arithmetic assumes it (docs/raknet.md#sizes).
pub const MAX_HEADER: usize = 23;
/// The minimum size of a capsule; fewer remaining bytes of a datagram are ignored.
pub const MIN_CAPSULE: usize = 4;

/// The position of a part in a split message.
///
/// ```
/// use rakwire::wire::datagram::{CapsuleHeader, Split};
/// use rakwire::wire::{Reader, Wire};
///
/// let header = CapsuleHeader::read(&mut Reader::new(&[0x50, 0, 8, 9, 0, 0, 0, 0, 0, 3, 0, 7, 0, 0, 0, 2, 0x86]))?;
/// assert_eq!(header.split, Some(Split { count: 3, id: 7, index: 2 }));
/// # Ok::<(), rakwire::wire::WireError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// The number of parts, at least 1.
    pub count: u32,
    /// The id of the split message.
    pub id: u16,
    /// The index of the part, below `count`.
    pub index: u32,
}

/// The header of a capsule. Fields that its reliability does not use are zero.
///
/// ```
/// use rakwire::raknet::Reliability;
/// use rakwire::wire::datagram::CapsuleHeader;
/// use rakwire::wire::{Reader, Source, Wire};
///
/// let mut reader = Reader::new(&[0x60, 0, 16, 3, 0, 0, 7, 0, 0, 5, 0x86, 0x01]);
/// let header = CapsuleHeader::read(&mut reader)?;
/// assert_eq!(header.reliability, Reliability::ReliableOrdered);
/// assert_eq!((header.reliable.get(), header.order.get(), header.channel), (3, 7, 5));
/// assert_eq!(reader.bytes("payload", header.length())?, [0x86, 0x01]);
/// # Ok::<(), rakwire::wire::WireError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapsuleHeader {
    /// The reliability, as on the wire.
    pub reliability: Reliability,
    /// The length of the payload in bits.
    pub bits: u16,
    /// The reliable message number.
    pub reliable: U24,
    /// The sequencing index.
    pub sequence: U24,
    /// The ordering index.
    pub order: U24,
    /// The ordering channel, below 32.
    pub channel: u8,
    /// The position of the part, if the capsule belongs to a split message.
    pub split: Option<Split>,
}

impl CapsuleHeader {
    /// Returns the length of the payload in bytes, rounded up.
    #[must_use]
    pub const fn length(&self) -> usize {
        (self.bits as usize).div_ceil(8)
    }

    /// Returns the size of a capsule header in bytes.
    #[must_use]
    pub const fn size(reliability: Reliability, split: bool) -> usize {
        let mut size = 3;
        if reliability.has_number_on_wire() {
            size += 3;
        }
        if reliability.is_sequenced() {
            size += 3;
        }
        if reliability.has_channel() {
            size += 4;
        }
        if split {
            size += 10;
        }
        size
    }
}

impl<'a> Wire<'a> for CapsuleHeader {
    #[inline]
    fn read<S: Source<'a>>(source: &mut S) -> Result<Self, WireError> {
        let flags = source.u8("flags")?;
        let reliability = Reliability::from_wire(flags >> 5);
        let bits = source.u16("length in bits")?;
        let mut header = Self {
            reliability,
            bits,
            reliable: U24::new(0),
            sequence: U24::new(0),
            order: U24::new(0),
            channel: 0,
            split: None,
        };
        if reliability.has_number_on_wire() {
            header.reliable = source.u24("reliable message number")?;
        }
        if reliability.is_sequenced() {
            header.sequence = source.u24("sequencing index")?;
        }
        if reliability.has_channel() {
            header.order = source.u24("ordering index")?;
            header.channel = source.u8("ordering channel")?;
        }
        if flags & SPLIT != 0 {
            header.split = Some(Split {
                count: source.u32("split count")?,
                id: source.u16("split id")?,
                index: source.u32("split index")?,
            });
        }
        header.check()
    }

    #[inline]
    fn write(&self, writer: &mut Writer<'_>) -> Result<(), WireError> {
        let split = if self.split.is_some() { SPLIT } else { 0 };
        let [high, low] = self.bits.to_be_bytes();
        writer.bytes(&[self.reliability.to_wire() << 5 | split, high, low])?;
        if self.reliability.has_number_on_wire() {
            writer.u24(self.reliable)?;
        }
        if self.reliability.is_sequenced() {
            writer.u24(self.sequence)?;
        }
        if self.reliability.has_channel() {
            let [low, middle, high, _] = self.order.get().to_le_bytes();
            writer.bytes(&[low, middle, high, self.channel])?;
        }
        let Some(split) = self.split else {
            return Ok(());
        };
        writer.u32(split.count)?;
        writer.u16(split.id)?;
        writer.u32(split.index)
    }
}

impl CapsuleHeader {
    #[inline]
    fn check(self) -> Result<Self, WireError> {
        if self.bits == 0 {
            return Err(WireError::BadLength);
        }
        if self.channel >= CHANNELS {
            return Err(WireError::BadChannel);
        }
        if self.split.is_some_and(|split| split.index >= split.count) {
            return Err(WireError::BadSplit);
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::super::law;
    use super::*;
    use crate::cursor::Reader;

    #[test]
    fn headers_round_trip() {
        law::check(&DatagramHeader::Data { hints: 4, number: U24::new(4) }, &[0x84, 4, 0, 0]);
        law::check(
            &DatagramHeader::Data { hints: 0x0C, number: U24::new(0x12_3456) },
            &[0x8C, 0x56, 0x34, 0x12],
        );
        law::check(&DatagramHeader::Ack { arrival_speed: None, records: 1 }, &[0xC0, 0, 1]);
        let speed = DatagramHeader::Ack { arrival_speed: Some(1.5), records: 2 };
        law::check(&speed, &[0xE0, 0x3F, 0xC0, 0, 0, 0, 2]);
        law::check(&DatagramHeader::Nack { records: 258 }, &[0xA0, 1, 2]);
        assert_eq!(DatagramHeader::read(&mut Reader::new(&[0x04, 0, 0, 0])), Err(WireError::UnknownId));
        for bytes in [&[0x84, 4, 0, 0][..], &[0xE0, 0x3F, 0xC0, 0, 0, 0, 2], &[0xA0, 1, 2]] {
            law::check_truncations::<DatagramHeader>(bytes);
        }
    }

    #[test]
    fn records_round_trip() {
        let single = |number| Record { first: U24::new(number), last: U24::new(number) };
        law::check(&single(0), &[1, 0, 0, 0]);
        law::check(&Record { first: U24::new(1), last: U24::new(2) }, &[0, 1, 0, 0, 2, 0, 0]);
        law::check(&single(0xFF_FFFF), &[1, 0xFF, 0xFF, 0xFF]);
        assert_eq!(Record::read(&mut Reader::new(&[0, 2, 0, 0, 1, 0, 0])), Err(WireError::BadRange));
        law::check_truncations::<Record>(&[0, 1, 0, 0, 2, 0, 0]);
    }

    /// The table of docs/raknet.md#sizes.
    #[test]
    fn sizes_match_the_documented_table() {
        for (mtu, body, part, original_part, our_part) in
            [(1492, 1455, 1432, 1410, 1394), (1200, 1163, 1140, 1118, 1102), (576, 539, 516, 494, 478)]
        {
            assert_eq!((Sizes::new(mtu, 0).body(), Sizes::new(mtu, 0).part()), (body, part));
            assert_eq!(Sizes::new(mtu, 11).part(), original_part);
            assert_eq!(Sizes::new(mtu, 19).part(), our_part);
        }
    }

    #[test]
    fn the_sizes_of_a_vacant_slot_are_zero() {
        let sizes = Sizes::default();
        assert_eq!([sizes.datagram(), sizes.body(), sizes.part(), sizes.foreign_part()], [0; 4]);
    }

    const PLAIN: CapsuleHeader = CapsuleHeader {
        reliability: Reliability::Unreliable,
        bits: 32,
        reliable: U24::new(0),
        sequence: U24::new(0),
        order: U24::new(0),
        channel: 0,
        split: None,
    };

    /// The datagram of docs/raknet.md#eight-messages: eight messages with the reliabilities 0 to 7 on channel 3.
    #[test]
    fn the_documented_datagram_with_eight_reliabilities_is_parsed() {
        let datagram = [
            0x84, 4, 0, 0, //
            0x00, 0, 0x20, 0x86, 0, 2, 3, //
            0x20, 0, 0x20, 0, 0, 0, 0, 0, 0, 3, 0x86, 1, 2, 3, //
            0x40, 0, 0x20, 2, 0, 0, 0x86, 2, 2, 3, //
            0x60, 0, 0x20, 3, 0, 0, 0, 0, 0, 3, 0x86, 3, 2, 3, //
            0x80, 0, 0x20, 4, 0, 0, 0, 0, 0, 1, 0, 0, 3, 0x86, 4, 2, 3, //
            0x00, 0, 0x20, 0x86, 5, 2, 3, //
            0x40, 0, 0x20, 5, 0, 0, 0x86, 6, 2, 3, //
            0x60, 0, 0x20, 6, 0, 0, 1, 0, 0, 3, 0x86, 7, 2, 3,
        ];
        let mut reader = Reader::new(&datagram);
        let header = DatagramHeader::read(&mut reader);
        assert_eq!(header, Ok(DatagramHeader::Data { hints: 4, number: U24::new(4) }));
        let expected = [
            (0, 0, 0, 0),
            (1, 0, 0, 0),
            (2, 2, 0, 0),
            (3, 3, 0, 0),
            (4, 4, 0, 1),
            (0, 0, 0, 0),
            (2, 5, 0, 0),
            (3, 6, 0, 1),
        ];
        for (index, (reliability, reliable, sequence, order)) in (0_u8..).zip(expected) {
            let before = reader.clone();
            let capsule = CapsuleHeader::read(&mut reader).expect("a capsule");
            let found = (
                capsule.reliability.to_wire(),
                capsule.reliable.get(),
                capsule.sequence.get(),
                capsule.order.get(),
            );
            assert_eq!(found, (reliability, reliable, sequence, order));
            assert_eq!(capsule.channel, if capsule.reliability.has_channel() { 3 } else { 0 });
            assert_eq!(
                before.remaining() - reader.remaining(),
                CapsuleHeader::size(capsule.reliability, false)
            );
            assert_eq!(reader.bytes("payload", capsule.length()), Ok(&[0x86, index, 2, 3][..]));
        }
        assert_eq!(reader.remaining(), 0);
    }

    #[test]
    fn capsule_headers_round_trip() {
        let split = Some(Split { count: 3, id: 258, index: 2 });
        let reliable =
            CapsuleHeader { reliability: Reliability::Reliable, bits: 11, reliable: U24::new(2), ..PLAIN };
        law::check(&reliable, &[0x40, 0, 11, 2, 0, 0]);
        assert_eq!(reliable.length(), 2);
        let part = CapsuleHeader {
            reliability: Reliability::ReliableSequenced,
            reliable: U24::new(1),
            sequence: U24::new(2),
            order: U24::new(3),
            channel: 31,
            split,
            ..PLAIN
        };
        let bytes = [0x90, 0, 32, 1, 0, 0, 2, 0, 0, 3, 0, 0, 31, 0, 0, 0, 3, 1, 2, 0, 0, 0, 2];
        law::check(&part, &bytes);
        law::check_truncations::<CapsuleHeader>(&bytes);
        assert_eq!(CapsuleHeader::size(Reliability::ReliableSequenced, true), MAX_HEADER);
    }

    #[test]
    fn malformed_capsule_headers_are_refused() {
        let read = |bytes: &[u8]| CapsuleHeader::read(&mut Reader::new(bytes));
        assert_eq!(read(&[0, 0, 0]), Err(WireError::BadLength));
        assert_eq!(read(&[0x60, 0, 8, 0, 0, 0, 0, 0, 0, 32]), Err(WireError::BadChannel));
        assert_eq!(read(&[0x50, 0, 8, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 2]), Err(WireError::BadSplit));
        assert_eq!(read(&[0x50, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), Err(WireError::BadSplit));
    }

    /// A reliability of 5 to 7 on the wire has no message number (docs/raknet.md#capsules).
    #[test]
    fn receipt_reliabilities_have_no_message_number() {
        let mut reader = Reader::new(&[0xE0, 0, 8, 9, 0, 0, 3, 0x86]);
        let capsule = CapsuleHeader::read(&mut reader).expect("a capsule");
        assert_eq!((capsule.order.get(), capsule.channel, capsule.reliable.get()), (9, 3, 0));
        assert_eq!(reader.remaining(), 1);
    }
}
