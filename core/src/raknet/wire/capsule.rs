//! The header of a message, or of a part of one, inside a data datagram (docs/raknet.md#capsules).
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
//! Bits 3..0 of the flags are ignored and written as zero. Reliabilities 5 to 7 denote receipts and are never sent. If
//! they are received, 7 has an ordering index and a channel, and none has a message number.

use super::Wire;
use crate::cursor::{Source, WireError, Writer};
use crate::raknet::delivery::{Channel, Reliability};
use crate::serial::U24;

const SPLIT: u8 = 0x10;
/// The number of ordering channels; a capsule on a higher channel ends its datagram.
pub const CHANNELS: u8 = Channel::COUNT as u8;
/// The size of the longest header (reliable sequenced, split) in bytes.
///
/// All size arithmetic is based on it (docs/raknet.md#sizes).
pub const MAX_HEADER: usize = 23;
/// The remaining bytes of a datagram below which no capsule is read.
pub const MIN_CAPSULE: usize = 4;

/// The position of a capsule in a split message.
///
/// ```
/// use rakwire::wire::capsule::{CapsuleHeader, Split};
/// use rakwire::wire::{Reader, Wire};
///
/// let header = CapsuleHeader::read(&mut Reader::new(&[0x50, 0, 8, 9, 0, 0, 0, 0, 0, 3, 0, 7, 0, 0, 0, 2, 0x86]))?;
/// assert_eq!(header.split, Some(Split { count: 3, id: 7, index: 2 }));
/// # Ok::<(), rakwire::wire::WireError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// The number of parts of the message, at least 1.
    pub count: u32,
    /// The id of the message that the part belongs to.
    pub id: u16,
    /// The index of the part, below the count.
    pub index: u32,
}

/// The header of a capsule. Fields that are not present for its reliability are zero.
///
/// ```
/// use rakwire::raknet::Reliability;
/// use rakwire::wire::capsule::CapsuleHeader;
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
    /// The reliability on the wire.
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
    /// Present in a part of a split message.
    pub split: Option<Split>,
}

impl CapsuleHeader {
    /// Returns the length of the payload in bytes.
    #[must_use]
    pub const fn length(&self) -> usize {
        (self.bits as usize).div_ceil(8)
    }

    /// Returns the size of a header of this form in bytes.
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
    use super::super::datagram::DatagramHeader;
    use super::super::law;
    use super::*;
    use crate::cursor::Reader;

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
    fn the_documented_eight_message_datagram_reads() {
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
    fn headers_round_trip() {
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
    fn malformed_headers_are_refused() {
        let read = |bytes: &[u8]| CapsuleHeader::read(&mut Reader::new(bytes));
        assert_eq!(read(&[0, 0, 0]), Err(WireError::BadLength));
        assert_eq!(read(&[0x60, 0, 8, 0, 0, 0, 0, 0, 0, 32]), Err(WireError::BadChannel));
        assert_eq!(read(&[0x50, 0, 8, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 2]), Err(WireError::BadSplit));
        assert_eq!(read(&[0x50, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), Err(WireError::BadSplit));
    }

    /// A reliability of 5 to 7 on the wire has no message number (docs/raknet.md#capsules).
    #[test]
    fn receipts_never_have_a_number_on_the_wire() {
        let mut reader = Reader::new(&[0xE0, 0, 8, 9, 0, 0, 3, 0x86]);
        let capsule = CapsuleHeader::read(&mut reader).expect("a capsule");
        assert_eq!((capsule.order.get(), capsule.channel, capsule.reliable.get()), (9, 3, 0));
        assert_eq!(reader.remaining(), 1);
    }
}
