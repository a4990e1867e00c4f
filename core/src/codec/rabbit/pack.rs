//! The traits for packing and unpacking values.

use super::Fingerprint;
#[cfg(any(doc, feature = "alloc"))]
use super::cursors::ErrorKind;
use super::cursors::{Error, Reader, Writer};

/// A type of values that can be packed. `#[derive(Pack)]` (feature `derive`) implements it.
///
/// ```
/// use rakwire::codec::rabbit::{Error, Pack, Writer};
///
/// /// A custom encoding, unlike Rabbit's: sixteen bits, big endian.
/// struct Port(u16);
///
/// impl Pack for Port {
///     fn pack(&self, writer: &mut Writer<'_>) -> Result<(), Error> {
///         writer.bytes(&self.0.to_be_bytes())
///     }
/// }
/// assert_eq!(rakwire::codec::rabbit::pack(&Port(0x1234), &mut [0; 2]), Ok(&[0x12, 0x34][..]));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be packed",
    note = "`#[derive(Pack)]` makes a struct or an enum packable; `usize`, `i8` and `char` have no encoding"
)]
pub trait Pack {
    /// Appends the value.
    ///
    /// # Errors
    /// [`ErrorKind::NoRoom`] if the buffer is full, or another error if the value exceeds a bound of its type.
    fn pack(&self, writer: &mut Writer<'_>) -> Result<(), Error>;

    /// Describes the encoding for a [`Fingerprint`].
    ///
    /// The default makes the fingerprint of the type, and of every type that contains it, `None`.
    fn describe(fingerprint: &mut Fingerprint) {
        fingerprint.opaque();
    }
}

impl Fingerprint {
    /// Returns the fingerprint of a type, or `None` if part of the type has no description or the type contains itself.
    #[must_use]
    pub fn of<T: Pack + ?Sized>() -> Option<u64> {
        let mut fingerprint = Self::new();
        fingerprint.nested::<T>();
        fingerprint.finish()
    }

    /// Appends the description of a nested type.
    pub fn nested<T: Pack + ?Sized>(&mut self) {
        self.part(T::describe);
    }
}

/// A type of values that can be unpacked from bytes with the lifetime `'a`.
///
/// ```
/// use rakwire::codec::rabbit::{Error, Reader, Unpack};
///
/// struct Port(u16);
///
/// impl Unpack<'_> for Port {
///     const MIN_BITS: usize = 16;
///     fn unpack(reader: &mut Reader<'_>) -> Result<Self, Error> {
///         let mut bytes = [0; 2];
///         reader.bytes(&mut bytes)?;
///         Ok(Self(u16::from_be_bytes(bytes)))
///     }
/// }
/// assert_eq!(Port::unpack(&mut Reader::new(&[0x12, 0x34])).map(|port| port.0), Ok(0x1234));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be unpacked",
    note = "`#[derive(Unpack)]` makes a struct or an enum unpackable; `usize`, `i8` and `char` have no encoding"
)]
pub trait Unpack<'a>: Sized {
    /// The minimum number of bits of a value, which limits how many values an input can contain.
    const MIN_BITS: usize;

    /// Takes a value.
    ///
    /// # Errors
    /// An error at the position of the invalid input.
    fn unpack(reader: &mut Reader<'a>) -> Result<Self, Error>;
}

/// A sequence or text with a known number of elements or bytes.
///
/// ```
/// assert_eq!(rakwire::codec::rabbit::Counted::count("☃"), 3);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is neither a sequence nor a text, so it cannot have `max`"
)]
pub trait Counted {
    /// Returns the number of elements, or of bytes of text.
    fn count(&self) -> usize;
}

/// A sequence or text that can be unpacked with a length limit.
///
/// ```
/// use rakwire::codec::rabbit::{ErrorKind, Reader, Text, UnpackBounded};
///
/// let error = Text::unpack_bounded(&mut Reader::new(&[0x0C, 0, 0, 0, 0]), 2).unwrap_err();
/// assert_eq!(error.kind, ErrorKind::TooMany { count: 3, limit: 2 });
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is neither a sequence nor a text, so it cannot have `max`"
)]
pub trait UnpackBounded<'a>: Unpack<'a> {
    /// Takes the value if it has at most `max` elements, or bytes of text.
    ///
    /// # Errors
    /// [`ErrorKind::TooMany`] if there are more, or another error in the input.
    fn unpack_bounded(reader: &mut Reader<'a>, max: usize) -> Result<Self, Error>;
}

/// Packs a value into `buffer` and returns the packed bytes.
///
/// ```
/// // 1 in 5 bits; the other bits of the byte are zero.
/// assert_eq!(rakwire::codec::rabbit::pack(&(true, 300_u32), &mut [0; 8]), Ok(&[0x63, 0x09, 0x00][..]));
/// ```
///
/// # Errors
/// [`ErrorKind::NoRoom`] if the buffer is too small, or another error if the value exceeds a bound of its type.
pub fn pack<'b, T: Pack + ?Sized>(value: &T, buffer: &'b mut [u8]) -> Result<&'b [u8], Error> {
    let mut writer = Writer::new(buffer);
    value.pack(&mut writer)?;
    Ok(writer.finish())
}

/// Unpacks a value from the start of `bytes`; trailing bytes are ignored.
///
/// ```
/// assert_eq!(rakwire::codec::rabbit::unpack(&[0x63, 0x09, 0x00]), Ok((true, 300_u32)));
/// ```
///
/// # Errors
/// An error at the position of the invalid input.
pub fn unpack<'a, T: Unpack<'a>>(bytes: &'a [u8]) -> Result<T, Error> {
    T::unpack(&mut Reader::new(bytes))
}

/// Packs a value into a vector of the packed length.
///
/// ```
/// assert_eq!(rakwire::codec::rabbit::to_vec(&[true; 20][..]), Ok(vec![0x50, 0xFC, 0xFF, 0x3F]));
/// ```
///
/// # Errors
/// An error if the value exceeds a bound of its type.
#[cfg(feature = "alloc")]
pub fn to_vec<T: Pack + ?Sized>(value: &T) -> Result<alloc::vec::Vec<u8>, Error> {
    let mut buffer = alloc::vec![0; 64];
    loop {
        let mut writer = Writer::new(&mut buffer);
        match value.pack(&mut writer) {
            Err(Error { kind: ErrorKind::NoRoom, .. }) => buffer.resize(2 * buffer.len(), 0),
            Err(error) => return Err(error),
            Ok(()) => {
                let length = writer.finish().len();
                buffer.truncate(length);
                return Ok(buffer);
            }
        }
    }
}
