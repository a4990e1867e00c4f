//! Integers, plain and compressed.

use super::{BitStreamReader, BitStreamWriter, Item};
use crate::cursor::WireError;

/// The integers of a bit stream: `u8` to `u64` and `i8` to `i64`, and no other.
///
/// ```
/// use rakwire::codec::bitstream::{BitStreamReader, Integer};
///
/// fn first<T: Integer>(bytes: &[u8]) -> Option<T> {
///     BitStreamReader::new(bytes).read().ok()
/// }
/// assert_eq!(first::<i16>(&[0xFF, 0xFE]), Some(-2));
/// ```
pub trait Integer: Item + Ord + sealed::Sealed {}

pub(super) mod sealed {
    #[expect(unnameable_types, reason = "without a name nobody else can implement it")]
    pub trait Sealed: Sized {
        const BITS: u32;
        /// How far the value lies above `base`, which is not greater.
        fn above(self, base: Self) -> u64;
        /// The value `distance` above `self`; wraps.
        fn plus(self, distance: u64) -> Self;
    }
}

macro_rules! integers {
    ($($type:ty, $unsigned:ty);+) => {$(
        impl Item for $type {
            fn read(reader: &mut BitStreamReader<'_>) -> Result<Self, WireError> {
                Ok(reader.bits.bits(<$type>::BITS)? as $type)
            }

            fn write(self, writer: &mut BitStreamWriter<'_>) -> Result<(), WireError> {
                writer.bits.bits(self as u64, <$type>::BITS)
            }

            fn read_compressed(reader: &mut BitStreamReader<'_>) -> Result<Self, WireError> {
                let mut bytes = [0; size_of::<$type>()];
                read_compressed(reader, &mut bytes)?;
                Ok(<$type>::from_be_bytes(bytes))
            }

            fn write_compressed(self, writer: &mut BitStreamWriter<'_>) -> Result<(), WireError> {
                write_compressed(writer, &self.to_be_bytes())
            }
        }

        impl Integer for $type {}

        impl sealed::Sealed for $type {
            const BITS: u32 = <$type>::BITS;

            fn above(self, base: Self) -> u64 {
                u64::from(self.wrapping_sub(base) as $unsigned)
            }

            fn plus(self, distance: u64) -> Self {
                self.wrapping_add(distance as $type)
            }
        }
    )+};
}

integers!(u8, u8; u16, u16; u32, u32; u64, u64; i8, u8; i16, u16; i32, u32; i64, u64);

/// Appends a big-endian number without its zero bytes at the end (docs/raknet.md#compressed-integers): a set bit for
/// each, then a clear bit and the bytes before. Of one byte that is left alone, a zero high nibble is left out in the
/// same way.
fn write_compressed(writer: &mut BitStreamWriter<'_>, number: &[u8]) -> Result<(), WireError> {
    let mut rest = number;
    while let [before @ .., last] = rest
        && !before.is_empty()
    {
        if *last != 0 {
            writer.bits.bit(false)?;
            return writer.bits.bytes(rest);
        }
        writer.bits.bit(true)?;
        rest = before;
    }
    let byte = rest.first().copied().unwrap_or(0);
    let small = byte >> 4 == 0;
    writer.bits.bit(small)?;
    writer.bits.bits(byte.into(), if small { 4 } else { 8 })
}

/// Fills `number`, which is all zero, with what [`write_compressed`] wrote.
fn read_compressed(reader: &mut BitStreamReader<'_>, number: &mut [u8]) -> Result<(), WireError> {
    for length in (2..=number.len()).rev() {
        if !reader.bits.bit()? {
            return reader.bits.bytes(number.get_mut(..length).unwrap_or_default());
        }
    }
    let count = if reader.bits.bit()? { 4 } else { 8 };
    let byte = reader.bits.bits(count)?;
    if let Some(first) = number.first_mut() {
        *first = byte as u8;
    }
    Ok(())
}
