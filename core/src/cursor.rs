//! Cursors over bytes: the only code of the core that takes bytes apart or puts them together.
//!
//! A wire type reads itself from a [`Source`] and names each field that it takes. [`Reader`] forgets the names at
//! compile time; a tool that shows a datagram implements [`Source::field`] and so prints exactly what the parser saw.
//!
//! Bytes may lie in several pieces, for what reads them without a copy: [`Chunks`].

use crate::serial::U24;

error_enum! {
    /// Why bytes could not be read or written.
    ///
    /// ```
    /// use rakwire::wire::{Reader, Source, WireError};
    ///
    /// let mut reader = Reader::new(&[1]);
    /// assert_eq!(reader.u16("length"), Err(WireError::Truncated));
    /// ```
    #[non_exhaustive]
    pub enum WireError {
        /// The bytes end before the field does.
        Truncated => "the bytes end before the field does",
        /// The buffer to write into is too small.
        NoRoom => "the buffer is too small",
        /// The first byte names no packet that is known here.
        UnknownId => "no packet has this id",
        /// The sixteen bytes of the offline magic are not where they belong.
        BadMagic => "the offline magic is not where it belongs",
        /// A length is zero or more than the format allows.
        BadLength => "a length is zero or too large",
        /// An ordering channel is 32 or more.
        BadChannel => "an ordering channel is 32 or more",
        /// A split count of zero, or a split index that is not below the count.
        BadSplit => "a split count is zero or a split index is not below it",
        /// A record of an acknowledgement ends before it begins.
        BadRange => "a record ends before it begins",
        /// A value that the format forbids.
        BadValue => "a value is outside the format",
    }
}

/// The value of a field as it was read, for tools that show a datagram.
///
/// ```
/// use rakwire::wire::{Source, Value, Wire, WireError, control::Control};
///
/// /// Keeps the fields that the parser saw, in order.
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

/// Defines the methods of [`Source`] that take a number.
macro_rules! numbers {
    ($($(#[$doc:meta])+ $method:ident -> $type:ty, $from_bytes:ident, $value:ident;)+) => {$(
        $(#[$doc])+
        ///
        /// # Errors
        /// [`WireError::Truncated`] when fewer bytes remain.
        #[inline]
        fn $method(&mut self, name: &'static str) -> Result<$type, WireError> {
            let number = <$type>::$from_bytes(self.array()?);
            self.field(name, size_of::<$type>(), Value::$value(number.into()));
            Ok(number)
        }
    )+};
}

/// Bytes that are taken from the front, field by field.
///
/// Implementors provide [`take`](Self::take) and [`peek`](Self::peek); [`field`](Self::field) is told the
/// name, the length in bytes and the value of each field after it was taken.
pub trait Source<'a> {
    /// Takes the next `count` bytes, or nothing when fewer remain.
    ///
    /// # Errors
    /// [`WireError::Truncated`] when fewer than `count` bytes remain.
    fn take(&mut self, count: usize) -> Result<&'a [u8], WireError>;

    /// All that remains, without taking it.
    fn peek(&self) -> &'a [u8];

    /// How many bytes remain.
    #[inline]
    fn remaining(&self) -> usize {
        self.peek().len()
    }

    /// Told of each field after its `length` bytes were taken.
    #[inline]
    fn field(&mut self, _name: &'static str, _length: usize, _value: Value<'a>) {}

    /// Takes `N` bytes as an array.
    ///
    /// # Errors
    /// [`WireError::Truncated`] when fewer remain.
    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let bytes = self.take(N)?;
        bytes.first_chunk().copied().ok_or(WireError::Truncated)
    }

    numbers! {
        /// Takes one byte.
        u8 -> u8, from_be_bytes, Number;
        /// Takes a big-endian number of 16 bits.
        u16 -> u16, from_be_bytes, Number;
        /// Takes a big-endian number of 32 bits.
        u32 -> u32, from_be_bytes, Number;
        /// Takes a little-endian number of 32 bits, which only events of the original hold (its memory as it lies there).
        u32_le -> u32, from_le_bytes, Number;
        /// Takes a big-endian number of 64 bits.
        u64 -> u64, from_be_bytes, Number;
        /// Takes a big-endian IEEE 754 number of 32 bits.
        f32 -> f32, from_be_bytes, Float;
    }

    /// Takes a little-endian number of 24 bits.
    ///
    /// # Errors
    /// [`WireError::Truncated`] when fewer bytes remain.
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
    /// [`WireError::Truncated`] when fewer remain.
    #[inline]
    fn bytes(&mut self, name: &'static str, count: usize) -> Result<&'a [u8], WireError> {
        let bytes = self.take(count)?;
        self.field(name, count, Value::Bytes(bytes));
        Ok(bytes)
    }

    /// Takes all that remains; never fails.
    #[inline]
    fn rest(&mut self, name: &'static str) -> &'a [u8] {
        let count = self.remaining();
        let bytes = self.take(count).unwrap_or(&[]);
        self.field(name, count, Value::Bytes(bytes));
        bytes
    }
}

/// Reads fields from the front of a byte slice.
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
    /// A reader at the front of `bytes`.
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

/// Writes fields to the front of a byte slice.
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
    /// A writer at the front of `buffer`.
    #[must_use]
    pub const fn new(buffer: &'b mut [u8]) -> Self {
        Self { buffer, at: 0 }
    }

    /// How many bytes were written.
    #[must_use]
    pub const fn written(&self) -> usize {
        self.at
    }

    /// How many more bytes fit.
    #[must_use]
    pub const fn room(&self) -> usize {
        self.buffer.len() - self.at
    }

    /// What was written.
    #[must_use]
    pub fn finish(self) -> &'b [u8] {
        self.buffer.get(..self.at).unwrap_or(&[])
    }

    /// Appends raw bytes.
    ///
    /// # Errors
    /// [`WireError::NoRoom`] when they do not fit; nothing is written then. So for every method below.
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
    /// [`WireError::NoRoom`].
    #[cfg_attr(target_pointer_width = "64", inline)]
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    pub fn u8(&mut self, number: u8) -> Result<(), WireError> {
        self.bytes(&[number])
    }

    /// Appends a big-endian number of 16 bits.
    ///
    /// # Errors
    /// [`WireError::NoRoom`].
    #[cfg_attr(target_pointer_width = "64", inline)]
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    pub fn u16(&mut self, number: u16) -> Result<(), WireError> {
        self.bytes(&number.to_be_bytes())
    }

    /// Appends a little-endian number of 24 bits.
    ///
    /// # Errors
    /// [`WireError::NoRoom`].
    #[inline]
    pub fn u24(&mut self, number: U24) -> Result<(), WireError> {
        let [low, middle, high, _] = number.get().to_le_bytes();
        self.bytes(&[low, middle, high])
    }

    /// Appends a big-endian number of 32 bits.
    ///
    /// # Errors
    /// [`WireError::NoRoom`].
    #[inline]
    pub fn u32(&mut self, number: u32) -> Result<(), WireError> {
        self.bytes(&number.to_be_bytes())
    }

    /// Appends a little-endian number of 32 bits.
    ///
    /// # Errors
    /// [`WireError::NoRoom`].
    #[inline]
    pub fn u32_le(&mut self, number: u32) -> Result<(), WireError> {
        self.bytes(&number.to_le_bytes())
    }

    /// Appends a big-endian number of 64 bits.
    ///
    /// # Errors
    /// [`WireError::NoRoom`].
    #[inline]
    pub fn u64(&mut self, number: u64) -> Result<(), WireError> {
        self.bytes(&number.to_be_bytes())
    }

    /// Appends `count` zero bytes.
    ///
    /// # Errors
    /// [`WireError::NoRoom`].
    pub fn zeros(&mut self, count: usize) -> Result<(), WireError> {
        let end = self.at.saturating_add(count);
        let room = self.buffer.get_mut(self.at..end).ok_or(WireError::NoRoom)?;
        room.fill(0);
        self.at = end;
        Ok(())
    }

    /// Writes a big-endian number of 16 bits over bytes written before.
    ///
    /// # Errors
    /// [`WireError::NoRoom`] when `at` was not written yet.
    pub fn patch_u16(&mut self, at: usize, number: u16) -> Result<(), WireError> {
        let room = self.buffer.get_mut(at..at.saturating_add(2)).ok_or(WireError::NoRoom)?;
        room.copy_from_slice(&number.to_be_bytes());
        Ok(())
    }
}

/// Where a piece of some [`Chunks`] begins; only those that gave it know what it means.
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
    /// The piece that everything begins with.
    pub const FIRST: Self = Self(0);

    /// A piece by a number of the implementation's own; zero is the first.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// The number that it was made of.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }
}

/// Bytes that lie in one or more pieces: a message as a peer lends it, or a slice of slices.
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
    /// The number of bytes in all pieces.
    fn total(&self) -> usize;

    /// The bytes of a piece, and where the next one begins. A piece that does not exist is empty and the last.
    fn piece(&self, at: Piece) -> (&[u8], Option<Piece>);
}

/// All in one piece.
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
