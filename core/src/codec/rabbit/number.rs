//! Integers and floats, and values composed of others: options, tuples, references.

use super::{Error, Fingerprint, Pack, Reader, Unpack, Writer};

/// The number of bytes written at a time; longer numbers are written four bytes at a time.
const WORD_BYTES: u32 = 4;
const WORD_BITS: u32 = 32;

/// Returns the number of bytes that a number needs, at least 1.
#[inline]
const fn bytes_of(number: u128) -> u32 {
    let bits = u128::BITS - number.leading_zeros();
    if bits == 0 { 1 } else { bits.div_ceil(8) }
}

/// Writes a number of at most 32 bits together with its length, at most 34 bits in total.
#[inline]
fn pack_short(number: u32, prefix: u32, writer: &mut Writer<'_>) -> Result<(), Error> {
    let bytes = (u32::BITS - (number | 1).leading_zeros()).div_ceil(8);
    writer.bits((u64::from(number) << prefix) | u64::from(bytes - 1), prefix + 8 * bytes)
}

#[inline]
fn unpack_short(prefix: u32, reader: &mut Reader<'_>) -> Result<u64, Error> {
    reader.prefixed(prefix)
}

/// Writes the most significant four bytes first, then the next four, and the remaining ones last
/// (docs/rabbit.md#integers).
fn pack_long(number: u128, prefix: u32, writer: &mut Writer<'_>) -> Result<(), Error> {
    let bytes = bytes_of(number);
    writer.bits(u64::from(bytes - 1), prefix)?;
    let mut left = bytes;
    while left > WORD_BYTES {
        left -= WORD_BYTES;
        writer.bits(low_half(number >> (8 * left)), WORD_BITS)?;
    }
    writer.bits(low_half(number), 8 * left)
}

fn unpack_long(prefix: u32, reader: &mut Reader<'_>) -> Result<u128, Error> {
    let mut left = u32::from(reader.bits(prefix)?.to_le_bytes()[0]) + 1;
    let mut number = 0;
    while left > WORD_BYTES {
        left -= WORD_BYTES;
        number |= u128::from(reader.bits(WORD_BITS)?) << (8 * left);
    }
    Ok(number | u128::from(reader.bits(8 * left)?))
}

/// Returns the low 64 bits.
#[expect(clippy::cast_possible_truncation, reason = "the caller writes at most 32 of them")]
const fn low_half(number: u128) -> u64 {
    number as u64
}

macro_rules! variable_lengths {
    ($($unsigned:ident $signed:ident $prefix:literal $pack:ident($packed:ident) $unpack:ident;)*) => {$(
        impl Pack for $unsigned {
            #[inline]
            fn pack(&self, writer: &mut Writer<'_>) -> Result<(), Error> {
                $pack($packed::from(*self), $prefix, writer)
            }

            fn describe(fingerprint: &mut Fingerprint) {
                fingerprint.bytes(&[b'u', $prefix]);
            }
        }

        impl Unpack<'_> for $unsigned {
            const MIN_BITS: usize = $prefix + 8;

            #[inline]
            #[expect(clippy::allow_attributes, reason = "not every width is narrowed")]
            #[allow(clippy::cast_possible_truncation, clippy::unnecessary_cast, reason = "the prefix bounds the bytes")]
            fn unpack(reader: &mut Reader<'_>) -> Result<Self, Error> {
                Ok($unpack($prefix, reader)? as $unsigned)
            }
        }

        /// Zig-zag: 0, -1, 1, -2, … become 0, 1, 2, 3, ….
        impl Pack for $signed {
            #[inline]
            fn pack(&self, writer: &mut Writer<'_>) -> Result<(), Error> {
                let number = (*self << 1) ^ (*self >> ($signed::BITS - 1));
                number.cast_unsigned().pack(writer)
            }

            fn describe(fingerprint: &mut Fingerprint) {
                fingerprint.bytes(&[b'i', $prefix]);
            }
        }

        impl Unpack<'_> for $signed {
            const MIN_BITS: usize = $prefix + 8;

            #[inline]
            fn unpack(reader: &mut Reader<'_>) -> Result<Self, Error> {
                let number = $unsigned::unpack(reader)?;
                Ok((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
            }
        }
    )*};
}

variable_lengths! {
    u16 i16 1 pack_short(u32) unpack_short;
    u32 i32 2 pack_short(u32) unpack_short;
    u64 i64 3 pack_long(u128) unpack_long;
    u128 i128 4 pack_long(u128) unpack_long;
}

/// One bit.
impl Pack for bool {
    #[inline]
    fn pack(&self, writer: &mut Writer<'_>) -> Result<(), Error> {
        writer.bit(*self)
    }

    fn describe(fingerprint: &mut Fingerprint) {
        fingerprint.bytes(b"b");
    }
}

impl Unpack<'_> for bool {
    const MIN_BITS: usize = 1;

    #[inline]
    fn unpack(reader: &mut Reader<'_>) -> Result<Self, Error> {
        reader.bit()
    }
}

/// Eight bits.
impl Pack for u8 {
    #[inline]
    fn pack(&self, writer: &mut Writer<'_>) -> Result<(), Error> {
        writer.bits((*self).into(), 8)
    }

    fn describe(fingerprint: &mut Fingerprint) {
        fingerprint.raw(8);
    }
}

impl Unpack<'_> for u8 {
    const MIN_BITS: usize = 8;

    #[inline]
    fn unpack(reader: &mut Reader<'_>) -> Result<Self, Error> {
        reader.byte()
    }
}

/// 32 bits; the payload of a NaN is preserved.
impl Pack for f32 {
    #[inline]
    fn pack(&self, writer: &mut Writer<'_>) -> Result<(), Error> {
        writer.bits(self.to_bits().into(), WORD_BITS)
    }

    fn describe(fingerprint: &mut Fingerprint) {
        fingerprint.bytes(b"f");
    }
}

impl Unpack<'_> for f32 {
    const MIN_BITS: usize = 32;

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "32 bits were read")]
    fn unpack(reader: &mut Reader<'_>) -> Result<Self, Error> {
        Ok(Self::from_bits(reader.bits(WORD_BITS)? as u32))
    }
}

/// 64 bits, the high 32 before the low 32 (docs/rabbit.md#floats).
impl Pack for f64 {
    fn pack(&self, writer: &mut Writer<'_>) -> Result<(), Error> {
        writer.bits(self.to_bits().rotate_left(WORD_BITS), 64)
    }

    fn describe(fingerprint: &mut Fingerprint) {
        fingerprint.bytes(b"d");
    }
}

impl Unpack<'_> for f64 {
    const MIN_BITS: usize = 64;

    fn unpack(reader: &mut Reader<'_>) -> Result<Self, Error> {
        Ok(Self::from_bits(reader.bits(64)?.rotate_left(WORD_BITS)))
    }
}

/// One bit, then the value if there is one.
impl<T: Pack> Pack for Option<T> {
    #[inline]
    fn pack(&self, writer: &mut Writer<'_>) -> Result<(), Error> {
        writer.bit(self.is_some())?;
        self.as_ref().map_or(Ok(()), |value| value.pack(writer))
    }

    fn describe(fingerprint: &mut Fingerprint) {
        fingerprint.bytes(b"(");
        fingerprint.nested::<T>();
        fingerprint.bytes(b")");
    }
}

impl<'a, T: Unpack<'a>> Unpack<'a> for Option<T> {
    const MIN_BITS: usize = 1;

    #[inline]
    fn unpack(reader: &mut Reader<'a>) -> Result<Self, Error> {
        Ok(if reader.bit()? { Some(T::unpack(reader)?) } else { None })
    }
}

impl<T: Pack + ?Sized> Pack for &T {
    #[inline]
    fn pack(&self, writer: &mut Writer<'_>) -> Result<(), Error> {
        (**self).pack(writer)
    }

    fn describe(fingerprint: &mut Fingerprint) {
        T::describe(fingerprint);
    }
}

macro_rules! tuples {
    ($($($name:ident)*;)*) => {$(
        /// The elements in order.
        impl<$($name: Pack),*> Pack for ($($name,)*) {
            #[expect(clippy::allow_attributes, reason = "an empty tuple uses none of them")]
            #[allow(non_snake_case, unused_variables, reason = "each value is named as its type is")]
            #[inline]
            fn pack(&self, writer: &mut Writer<'_>) -> Result<(), Error> {
                let ($($name,)*) = self;
                $($name.pack(writer)?;)*
                Ok(())
            }

            #[expect(clippy::allow_attributes, reason = "an empty tuple uses none of them")]
            #[allow(unused_variables, reason = "an empty tuple describes nothing")]
            fn describe(fingerprint: &mut Fingerprint) {
                $(fingerprint.nested::<$name>();)*
            }
        }

        impl<'a, $($name: Unpack<'a>),*> Unpack<'a> for ($($name,)*) {
            const MIN_BITS: usize = 0 $(+ $name::MIN_BITS)*;

            #[expect(clippy::allow_attributes, reason = "an empty tuple uses none of them")]
            #[allow(unused_variables, clippy::unused_unit, reason = "an empty tuple reads nothing")]
            #[inline]
            fn unpack(reader: &mut Reader<'a>) -> Result<Self, Error> {
                Ok(($($name::unpack(reader)?,)*))
            }
        }
    )*};
}

tuples! {
    ;
    A;
    A B;
    A B C;
    A B C D;
    A B C D E;
    A B C D E F;
    A B C D E F G;
    A B C D E F G H;
}
