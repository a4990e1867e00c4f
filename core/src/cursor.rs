//! Cursors over bytes: the only code of the core that parses or serializes.
//!
//! A wire type reads itself from a [`Source`] and names each field. [`Reader`] discards the names at compile time. A
//! tool that displays datagrams implements [`Source::field`], so it prints exactly the fields that the parser read.
//!
//! [`Chunks`] gives access to bytes that are stored in several pieces, without a copy.

use crate::serial::U24;

error_enum! {
    /// The reason why bytes could not be parsed or written.
    ///
    /// ```
    /// use rakwire::wire::{Reader, Source, WireError};
    ///
    /// let mut reader = Reader::new(&[1]);
    /// assert_eq!(reader.u16("length"), Err(WireError::Truncated));
    /// ```
    #[non_exhaustive]
    pub enum WireError {
        /// The input ends within a field.
        Truncated => "the input ends within a field",
        /// The output buffer is too small.
        NoRoom => "the buffer is too small",
        /// The first byte is not the ID of a known packet.
        UnknownId => "the packet ID is unknown",
        /// The 16 bytes of the offline magic are missing at their position.
        BadMagic => "the offline magic is missing",
        /// A length is zero or exceeds the maximum of the format.
        BadLength => "a length is zero or too large",
        /// An ordering channel is 32 or more.
        BadChannel => "an ordering channel is 32 or more",
        /// The part count of a split message is zero, or the part's index is not below the count.
        BadSplit => "a split count is zero, or not above the split index",
        /// The end of an acknowledgement range is before its start.
        BadRange => "a record ends before it starts",
        /// A field has a value that the format does not allow.
        BadValue => "the format does not allow a value",
    }
}

/// The value of a field that was read, for tools that display datagrams.
///
/// ```
/// use rakwire::wire::{Source, Value, Wire, WireError, control::Control};
///
/// /// Records the fields in the order in which the parser read them.
/// struct Recorder<'a>(&'a [u8], Vec<(&'static str, Value<'a>)>);
///
/// impl<'a> Source<'a> for Recorder<'a> {
///     fn take(&mut self, count: usize) -> Result<&'a [u8], WireError> {
///         let (taken, rest) = self.0.split_at_checked(count).ok_or(WireError::Truncated)?;
///         self.0 = rest;
///         Ok(taken)
///     }
///     fn peek(&self) -> &'a [u8] {
///         self.0
///     }
///     fn field(&mut self, name: &'static str, _length: usize, value: Value<'a>) {
///         self.1.push((name, value));
///     }
/// }
///
/// let mut recorder = Recorder(&[0, 0, 0, 0, 0, 0, 0, 1, 2], Vec::new());
/// Control::read(&mut recorder)?;
/// assert_eq!(recorder.1, [("id", Value::Number(0)), ("time", Value::Number(258))]);
/// # Ok::<(), WireError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value<'a> {
    /// An unsigned number.
    Number(u64),
    /// A floating-point number.
    Float(f32),
    /// Raw bytes.
    Bytes(&'a [u8]),
    /// An address.
    Address(core::net::SocketAddr),
}

/// Defines the methods of [`Source`] that read one number each.
macro_rules! numbers {
    ($($(#[$doc:meta])+ $method:ident -> $type:ty, $from_bytes:ident, $value:ident;)+) => {$(
        $(#[$doc])+
        ///
        /// # Errors
        /// [`WireError::Truncated`] if fewer bytes remain.
        #[inline]
        fn $method(&mut self, name: &'static str) -> Result<$type, WireError> {
            let number = <$type>::$from_bytes(self.array()?);
            self.field(name, size_of::<$type>(), Value::$value(number.into()));
            Ok(number)
        }
    )+};
}

/// A sequence of bytes that is consumed from the front, field by field.
///
/// Implement [`take`](Self::take) and [`peek`](Self::peek). [`field`](Self::field) is called after each field is
/// taken, with its name, its length in bytes and its value.
pub trait Source<'a> {
    /// Takes the next `count` bytes. If fewer remain, it takes none.
    ///
    /// # Errors
    /// [`WireError::Truncated`] if fewer than `count` bytes remain.
    fn take(&mut self, count: usize) -> Result<&'a [u8], WireError>;

    /// Returns all remaining bytes without taking them.
    fn peek(&self) -> &'a [u8];

    /// Returns the number of remaining bytes.
    #[inline]
    fn remaining(&self) -> usize {
        self.peek().len()
    }

    /// Called after each field is taken, with its name, its length in bytes and its value.
    #[inline]
    fn field(&mut self, _name: &'static str, _length: usize, _value: Value<'a>) {}

    /// Takes the next `N` bytes as an array.
    ///
    /// # Errors
    /// [`WireError::Truncated`] if fewer than `N` bytes remain.
    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let bytes = self.take(N)?;
        bytes.first_chunk().copied().ok_or(WireError::Truncated)
    }

    numbers! {
        /// Takes one byte.
        u8 -> u8, from_be_bytes, Number;
        /// Takes a big-endian 16-bit number.
        u16 -> u16, from_be_bytes, Number;
        /// Takes a big-endian 32-bit number.
        u32 -> u32, from_be_bytes, Number;
        /// Takes a little-endian 32-bit number, for C++ RakNet messages that are copies of a struct in memory.
        u32_le -> u32, from_le_bytes, Number;
        /// Takes a big-endian 64-bit number.
        u64 -> u64, from_be_bytes, Number;
        /// Takes a big-endian 32-bit IEEE 754 floating-point number.
        f32 -> f32, from_be_bytes, Float;
    }

    /// Takes a little-endian 24-bit number.
    ///
    /// # Errors
    /// [`WireError::Truncated`] if fewer than 3 bytes remain.
    #[inline]
    fn u24(&mut self, name: &'static str) -> Result<U24, WireError> {
        let [low, middle, high] = self.array()?;
        let number = U24::new(u32::from_le_bytes([low, middle, high, 0]));
        self.field(name, 3, Value::Number(number.get().into()));
        Ok(number)
    }

    /// Takes `count` raw bytes.
    ///
    /// # Errors
    /// [`WireError::Truncated`] if fewer than `count` bytes remain.
    #[inline]
    fn bytes(&mut self, name: &'static str, count: usize) -> Result<&'a [u8], WireError> {
        let bytes = self.take(count)?;
        self.field(name, count, Value::Bytes(bytes));
        Ok(bytes)
    }

    /// Takes all remaining bytes. It never fails.
    #[inline]
    fn rest(&mut self, name: &'static str) -> &'a [u8] {
        let count = self.remaining();
        let bytes = self.take(count).unwrap_or(&[]);
        self.field(name, count, Value::Bytes(bytes));
        bytes
    }
}

/// Reads fields from a byte slice, front to back.
///
/// ```
/// use rakwire::wire::{Reader, Source};
///
/// let mut reader = Reader::new(&[0x84, 1, 0, 0, 9]);
/// assert_eq!(reader.u8("flags"), Ok(0x84));
/// assert_eq!(reader.u24("number")?.get(), 1);
/// assert_eq!(reader.rest("body"), [9]);
/// # Ok::<(), rakwire::wire::WireError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Creates a reader at the start of `bytes`.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }
}

impl<'a> Source<'a> for Reader<'a> {
    #[cfg_attr(target_pointer_width = "64", inline)]
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    fn take(&mut self, count: usize) -> Result<&'a [u8], WireError> {
        let (taken, rest) = self.bytes.split_at_checked(count).ok_or(WireError::Truncated)?;
        self.bytes = rest;
        Ok(taken)
    }

    #[inline]
    fn peek(&self) -> &'a [u8] {
        self.bytes
    }

    #[cfg_attr(target_pointer_width = "64", inline)]
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let (array, rest) = self.bytes.split_first_chunk().ok_or(WireError::Truncated)?;
        self.bytes = rest;
        Ok(*array)
    }
}

/// Writes fields into a byte slice, front to back.
///
/// ```
/// use rakwire::U24;
/// use rakwire::wire::Writer;
///
/// let mut buffer = [0; 8];
/// let mut writer = Writer::new(&mut buffer);
/// writer.u8(0x84)?;
/// writer.u24(U24::new(1))?;
/// assert_eq!(writer.finish(), [0x84, 1, 0, 0]);
/// # Ok::<(), rakwire::wire::WireError>(())
/// ```
#[derive(Debug)]
pub struct Writer<'b> {
    buffer: &'b mut [u8],
    at: usize,
}

impl<'b> Writer<'b> {
    /// Creates a writer at the start of `buffer`.
    #[must_use]
    pub const fn new(buffer: &'b mut [u8]) -> Self {
        Self { buffer, at: 0 }
    }

    /// Returns the number of bytes written so far.
    #[must_use]
    pub const fn written(&self) -> usize {
        self.at
    }

    /// Returns the number of bytes left in the buffer.
    #[must_use]
    pub const fn room(&self) -> usize {
        self.buffer.len() - self.at
    }

    /// Returns the bytes written.
    #[must_use]
    pub fn finish(self) -> &'b [u8] {
        self.buffer.get(..self.at).unwrap_or(&[])
    }

    /// Appends raw bytes.
    ///
    /// # Errors
    /// [`WireError::NoRoom`] if the bytes do not fit. As in all methods below, nothing is written in that case.
    #[cfg_attr(target_pointer_width = "64", inline)]
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        let rest = self.buffer.get_mut(self.at..).ok_or(WireError::NoRoom)?;
        let room = rest.get_mut(..bytes.len()).ok_or(WireError::NoRoom)?;
        room.copy_from_slice(bytes);
        self.at += bytes.len();
        Ok(())
    }

    /// Appends one byte.
    ///
    /// # Errors
    /// [`WireError::NoRoom`] if the buffer is full.
    #[cfg_attr(target_pointer_width = "64", inline)]
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    pub fn u8(&mut self, number: u8) -> Result<(), WireError> {
        self.bytes(&[number])
    }

    /// Appends a big-endian 16-bit number.
    ///
    /// # Errors
    /// [`WireError::NoRoom`] if fewer than 2 bytes are left.
    #[cfg_attr(target_pointer_width = "64", inline)]
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    pub fn u16(&mut self, number: u16) -> Result<(), WireError> {
        self.bytes(&number.to_be_bytes())
    }

    /// Appends a little-endian 24-bit number.
    ///
    /// # Errors
    /// [`WireError::NoRoom`] if fewer than 3 bytes are left.
    #[inline]
    pub fn u24(&mut self, number: U24) -> Result<(), WireError> {
        let [low, middle, high, _] = number.get().to_le_bytes();
        self.bytes(&[low, middle, high])
    }

    /// Appends a big-endian 32-bit number.
    ///
    /// # Errors
    /// [`WireError::NoRoom`] if fewer than 4 bytes are left.
    #[inline]
    pub fn u32(&mut self, number: u32) -> Result<(), WireError> {
        self.bytes(&number.to_be_bytes())
    }

    /// Appends a little-endian 32-bit number.
    ///
    /// # Errors
    /// [`WireError::NoRoom`] if fewer than 4 bytes are left.
    #[inline]
    pub fn u32_le(&mut self, number: u32) -> Result<(), WireError> {
        self.bytes(&number.to_le_bytes())
    }

    /// Appends a big-endian 64-bit number.
    ///
    /// # Errors
    /// [`WireError::NoRoom`] if fewer than 8 bytes are left.
    #[inline]
    pub fn u64(&mut self, number: u64) -> Result<(), WireError> {
        self.bytes(&number.to_be_bytes())
    }

    /// Appends `count` zero bytes.
    ///
    /// # Errors
    /// [`WireError::NoRoom`] if fewer than `count` bytes are left.
    pub fn zeros(&mut self, count: usize) -> Result<(), WireError> {
        let end = self.at.saturating_add(count);
        let room = self.buffer.get_mut(self.at..end).ok_or(WireError::NoRoom)?;
        room.fill(0);
        self.at = end;
        Ok(())
    }

    /// Overwrites two bytes at `at` with a big-endian 16-bit number, for a length that follows from later fields.
    ///
    /// # Errors
    /// [`WireError::NoRoom`] if the two bytes have not been written yet.
    pub fn patch_u16(&mut self, at: usize, number: u16) -> Result<(), WireError> {
        let room = self.buffer.get_mut(at..at.saturating_add(2)).ok_or(WireError::NoRoom)?;
        room.copy_from_slice(&number.to_be_bytes());
        Ok(())
    }
}

/// The position of a piece in [`Chunks`]. Its number has a meaning only to the implementation that returned it.
///
/// ```
/// use rakwire::{Chunks, Piece};
///
/// let message: &[&[u8]] = &[b"ab", b"c"];
/// let (first, second) = message.piece(Piece::FIRST);
/// assert_eq!((first, second.map(|at| message.piece(at).0)), (&b"ab"[..], Some(&b"c"[..])));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece(pub(crate) u32);

impl Piece {
    /// The position of the first piece.
    pub const FIRST: Self = Self(0);

    /// Creates a position; zero must be the first piece, and the meaning of other numbers is up to the
    /// implementation.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// Returns the number given to [`new`](Self::new).
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }
}

/// Bytes in one or more pieces: a message that a peer lends to the application, or a slice of slices.
///
/// ```
/// use rakwire::{Chunks, Piece};
///
/// fn longest_piece(bytes: &dyn Chunks) -> usize {
///     let (mut longest, mut next) = (0, Some(Piece::FIRST));
///     while let Some(at) = next {
///         let (piece, after) = bytes.piece(at);
///         (longest, next) = (longest.max(piece.len()), after);
///     }
///     longest
/// }
/// let pieces: &[&[u8]] = &[&[1, 2], &[3, 4, 5]];
/// assert_eq!((longest_piece(&pieces), pieces.total()), (3, 5));
/// ```
pub trait Chunks {
    /// Returns the total number of bytes.
    fn total(&self) -> usize;

    /// Returns the bytes of a piece, and the position of the next piece.
    ///
    /// If `at` does not exist, the bytes are empty and there is no next piece.
    fn piece(&self, at: Piece) -> (&[u8], Option<Piece>);
}

/// A single piece.
impl Chunks for [u8] {
    fn total(&self) -> usize {
        self.len()
    }

    fn piece(&self, at: Piece) -> (&[u8], Option<Piece>) {
        (if at == Piece::FIRST { self } else { &[] }, None)
    }
}

impl Chunks for [&[u8]] {
    fn total(&self) -> usize {
        self.iter().map(|piece| piece.len()).sum()
    }

    fn piece(&self, at: Piece) -> (&[u8], Option<Piece>) {
        let index = at.0 as usize;
        let next = at.0.checked_add(1).filter(|next| (*next as usize) < self.len());
        (self.get(index).copied().unwrap_or(&[]), next.map(Piece))
    }
}

impl<T: Chunks + ?Sized> Chunks for &T {
    fn total(&self) -> usize {
        (**self).total()
    }

    fn piece(&self, at: Piece) -> (&[u8], Option<Piece>) {
        (**self).piece(at)
    }
}

#[cfg(test)]
mod tests {
    use std::vec;
    use std::vec::Vec;

    use bolero::{ValueGenerator, produce};

    use super::*;

    #[derive(Clone, Debug)]
    enum Field {
        U8(u8),
        U16(u16),
        U24(U24),
        U32(u32),
        U32Le(u32),
        U64(u64),
        Bytes(Vec<u8>),
        Zeros(usize),
    }

    /// The kind of a field, its number and its bytes.
    type Parts = (u8, u64, Vec<u8>);

    fn field((kind, number, bytes): Parts) -> Field {
        match kind {
            0 => Field::U8(number as u8),
            1 => Field::U16(number as u16),
            2 => Field::U24(U24::new(number as u32)),
            3 => Field::U32(number as u32),
            4 => Field::U32Le(number as u32),
            5 => Field::U64(number),
            6 => Field::Bytes(bytes),
            _ => Field::Zeros(bytes.len()),
        }
    }

    fn any_fields() -> impl ValueGenerator<Output = Vec<Field>> {
        let bytes = produce::<Vec<u8>>().with().len(0..20_usize);
        let parts = (0..8_u8, produce::<u64>(), bytes);
        let fields = produce::<Vec<Parts>>().with().len(0..20_usize).values(parts);
        fields.map_gen(|fields| fields.into_iter().map(field).collect())
    }

    fn write(writer: &mut Writer<'_>, field: &Field) -> Result<(), WireError> {
        match field {
            Field::U8(number) => writer.u8(*number),
            Field::U16(number) => writer.u16(*number),
            Field::U24(number) => writer.u24(*number),
            Field::U32(number) => writer.u32(*number),
            Field::U32Le(number) => writer.u32_le(*number),
            Field::U64(number) => writer.u64(*number),
            Field::Bytes(bytes) => writer.bytes(bytes),
            Field::Zeros(count) => writer.zeros(*count),
        }
    }

    fn reads(reader: &mut Reader<'_>, field: &Field) -> Result<bool, WireError> {
        Ok(match field {
            Field::U8(number) => reader.u8("")? == *number,
            Field::U16(number) => reader.u16("")? == *number,
            Field::U24(number) => reader.u24("")? == *number,
            Field::U32(number) => reader.u32("")? == *number,
            Field::U32Le(number) => reader.u32_le("")? == *number,
            Field::U64(number) => reader.u64("")? == *number,
            Field::Bytes(bytes) => reader.bytes("", bytes.len())? == bytes,
            Field::Zeros(count) => reader.bytes("", *count)?.iter().all(|byte| *byte == 0),
        })
    }

    /// Fields read back as written. Writing a field that does not fit, or reading a truncated one, fails and consumes
    /// nothing.
    #[test]
    fn fields_read_back_or_fail_without_consuming_bytes() {
        let input = (any_fields(), 0..200_usize, 0..20_usize);
        bolero::check!().with_iterations(if cfg!(miri) { 2 } else { 1_000 }).with_generator(input).for_each(
            |(fields, room, cut)| {
                let mut buffer = vec![0xEE; *room];
                let mut writer = Writer::new(&mut buffer);
                let mut written = Vec::new();
                for field in fields {
                    let before = writer.written();
                    match write(&mut writer, field) {
                        Ok(()) => written.push(field),
                        Err(error) => assert_eq!((error, writer.written()), (WireError::NoRoom, before)),
                    }
                    assert_eq!(writer.written() + writer.room(), *room);
                }
                let length = writer.finish().len();
                assert!(buffer[length..].iter().all(|byte| *byte == 0xEE), "bytes past the end were written");
                let end = length.saturating_sub(*cut);
                let mut reader = Reader::new(&buffer[..end]);
                for field in written {
                    let before = reader.remaining();
                    match reads(&mut reader, field) {
                        Ok(is_same) => assert!(is_same),
                        Err(error) => {
                            assert_eq!((error, reader.remaining()), (WireError::Truncated, before));
                            assert!(end < length);
                            break;
                        }
                    }
                }
            },
        );
    }
}
