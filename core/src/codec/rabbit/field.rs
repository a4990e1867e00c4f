//! Functions called by the code of `#[derive(Pack, Unpack)]` for fields with attributes. Handwritten code may use
//! them too.
//!
//! ```
//! use rakwire::codec::rabbit::{Reader, Writer, field};
//!
//! let mut buffer = [0; 1];
//! let mut writer = Writer::new(&mut buffer);
//! field::pack_raw(&5_u8, 3, &mut writer)?;
//! assert!(field::pack_raw(&8_u8, 3, &mut writer).is_err());
//! assert_eq!(field::unpack_raw::<u8>(3, &mut Reader::new(&[0xFD])), Ok(5));
//! # Ok::<(), rakwire::codec::rabbit::Error>(())
//! ```

use super::{Counted, Error, ErrorKind, Pack, Reader, UnpackBounded, Writer};

/// An unsigned number for which a field may set the width in bits.
///
/// ```
/// use rakwire::codec::rabbit::field::Raw;
///
/// assert_eq!((u16::WIDTH, 7_u16.to_raw(), u16::from_raw(65_536)), (16, 7, None));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot have a width in bits",
    note = "only u8, u16, u32 and u64 can"
)]
pub trait Raw: Copy {
    /// The width of the type in bits.
    const WIDTH: u32;

    /// Returns the number.
    fn to_raw(self) -> u64;

    /// Converts a number to the type; `None` if it has more than [`WIDTH`](Self::WIDTH) bits.
    fn from_raw(number: u64) -> Option<Self>;
}

macro_rules! raw {
    ($($number:ident)*) => {$(
        impl Raw for $number {
            const WIDTH: u32 = $number::BITS;

            #[inline]
            fn to_raw(self) -> u64 {
                self.into()
            }

            #[inline]
            fn from_raw(number: u64) -> Option<Self> {
                number.try_into().ok()
            }
        }
    )*};
}

raw!(u8 u16 u32 u64);

/// Appends a number in `width` bits, 1 to 64.
///
/// # Errors
/// [`ErrorKind::TooWide`] if the number has more bits, and the errors of [`Writer::bits`].
#[inline]
pub fn pack_raw<T: Raw>(value: &T, width: u32, writer: &mut Writer<'_>) -> Result<(), Error> {
    let number = value.to_raw();
    if width < 64 && number >> width != 0 {
        return Err(writer.error(ErrorKind::TooWide { width }));
    }
    writer.bits(number, width)
}

/// Takes a number of `width` bits, 1 to 64.
///
/// # Errors
/// [`ErrorKind::TooWide`] if the type cannot represent the number, and the errors of [`Reader::bits`].
#[inline]
pub fn unpack_raw<T: Raw>(width: u32, reader: &mut Reader<'_>) -> Result<T, Error> {
    let before = reader.position();
    let number = reader.bits(width)?;
    T::from_raw(number).ok_or(Error { kind: ErrorKind::TooWide { width: T::WIDTH }, bit: before })
}

/// Appends a sequence or a text of at most `max` elements or bytes.
///
/// # Errors
/// [`ErrorKind::TooMany`] if there are more than `max`, and the errors of packing the value.
pub fn pack_bounded<T: Pack + Counted>(value: &T, max: usize, writer: &mut Writer<'_>) -> Result<(), Error> {
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    if value.count() > max {
        let kind = ErrorKind::TooMany { count: number(value.count()), limit: number(max) };
        return Err(writer.error(kind));
    }
    value.pack(writer)
}

/// Takes a sequence or a text of at most `max` elements or bytes.
///
/// # Errors
/// [`ErrorKind::TooMany`] if there are more than `max`, and the errors of unpacking the value.
pub fn unpack_bounded<'a, T: UnpackBounded<'a>>(max: usize, reader: &mut Reader<'a>) -> Result<T, Error> {
    T::unpack_bounded(reader, max)
}
