//! The reader and the writer of packed values, and their errors.

use core::fmt;

use crate::codec::bits::{BitReader, BitWriter, Lsb};
use crate::cursor::{Chunks, Piece};

/// The maximum number of levels of nested sequences.
pub const MAX_DEPTH: u8 = 16;

/// Reads packed values from bytes in one piece or several.
///
/// A clone reads the same bits again. A failed read of a number consumes nothing.
///
/// ```
/// use rakwire::codec::rabbit::Reader;
///
/// // The example of docs/rabbit.md: 15 in 5 bits, 81 in 7, 1 in 2; here with a piece boundary inside 81.
/// let pieces: &[&[u8]] = &[&[0x2F], &[0x1A]];
/// let mut reader = Reader::over(&pieces);
/// assert_eq!((reader.bits(5)?, reader.bits(7)?, reader.bits(2)?), (15, 81, 1));
/// assert_eq!((reader.position(), reader.remaining()), (14, 2));
/// # Ok::<(), rakwire::codec::rabbit::Error>(())
/// ```
#[derive(Clone)]
pub struct Reader<'a> {
    piece: BitReader<'a, Lsb>,
    source: Option<&'a dyn Chunks>,
    next: Option<Piece>,
    /// The number of bits in the pieces already read.
    before: usize,
    /// The number of bits in the pieces that have not been started.
    after: usize,
    depth: u8,
}

impl<'a> Reader<'a> {
    /// Creates a reader of a byte slice.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { piece: BitReader::new(bytes), source: None, next: None, before: 0, after: 0, depth: 0 }
    }

    /// Creates a reader of bytes in several pieces.
    #[must_use]
    pub fn over(source: &'a dyn Chunks) -> Self {
        let (first, next) = source.piece(Piece::FIRST);
        let piece = BitReader::new(first);
        let after = source.total().saturating_mul(8).saturating_sub(piece.remaining());
        Self { piece, source: Some(source), next, before: 0, after, depth: 0 }
    }

    /// Returns the number of bits consumed.
    #[must_use]
    pub const fn position(&self) -> usize {
        self.before + self.piece.position()
    }

    /// Returns the number of remaining bits, including the padding of the last byte.
    #[must_use]
    pub const fn remaining(&self) -> usize {
        self.piece.remaining().saturating_add(self.after)
    }

    /// Takes a number of `count` bits, 0 to 64.
    ///
    /// # Errors
    /// [`ErrorKind::BadWidth`] if `count` exceeds 64, [`ErrorKind::EndOfInput`] if fewer bits remain.
    #[inline(always)]
    pub fn bits(&mut self, count: u32) -> Result<u64, Error> {
        match self.piece.bits(count) {
            Ok(number) => Ok(number),
            Err(_) => self.bits_across(count),
        }
    }

    /// Takes a number of one to four bytes, preceded by that byte count minus one in `prefix` bits.
    #[inline(always)]
    pub(super) fn prefixed(&mut self, prefix: u32) -> Result<u64, Error> {
        let window = self.piece.peek();
        let count = 8 * ((window & !(u64::MAX << prefix)) as u32 + 1);
        match self.piece.skip((prefix + count) as usize) {
            Ok(()) => Ok((window >> prefix) & !(u64::MAX << count)),
            Err(_) => self.prefixed_across(prefix),
        }
    }

    #[cold]
    fn prefixed_across(&mut self, prefix: u32) -> Result<u64, Error> {
        let more = self.bits(prefix)?;
        self.bits(8 * (more as u32 + 1))
    }

    /// Takes one bit.
    ///
    /// # Errors
    /// [`ErrorKind::EndOfInput`] if no bit remains.
    #[inline]
    pub fn bit(&mut self) -> Result<bool, Error> {
        Ok(self.bits(1)? != 0)
    }

    /// Fills `out` with bytes, from any bit position.
    ///
    /// # Errors
    /// [`ErrorKind::EndOfInput`] if fewer bytes remain; the position is then unchanged.
    pub fn bytes(&mut self, out: &mut [u8]) -> Result<(), Error> {
        if self.piece.bytes(out).is_ok() {
            return Ok(());
        }
        if out.len().saturating_mul(8) > self.remaining() {
            return Err(self.error(ErrorKind::EndOfInput));
        }
        for byte in out {
            *byte = self.byte()?;
        }
        Ok(())
    }

    #[inline]
    pub(super) fn byte(&mut self) -> Result<u8, Error> {
        Ok(self.bits(8)?.to_le_bytes()[0])
    }

    /// Creates an error at the current position.
    #[must_use]
    pub const fn error(&self, kind: ErrorKind) -> Error {
        Error { kind, bit: self.position() }
    }

    /// Reads the contents of a sequence. The nesting depth is limited to protect the stack.
    pub(super) fn within<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        if self.depth >= MAX_DEPTH {
            return Err(self.error(ErrorKind::TooDeep));
        }
        self.depth += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }

    /// Takes a number that crosses into the next piece, or begins there.
    #[cold]
    fn bits_across(&mut self, count: u32) -> Result<u64, Error> {
        if count > 64 {
            return Err(self.error(ErrorKind::BadWidth));
        }
        if count as usize > self.remaining() {
            return Err(self.error(ErrorKind::EndOfInput));
        }
        let (mut number, mut have) = (0, 0);
        while have < count {
            let here = u32::try_from(self.piece.remaining()).unwrap_or(u32::MAX).min(count - have);
            if here == 0 {
                self.begin_next_piece()?;
                continue;
            }
            number |= self.piece.bits(here).unwrap_or(0) << have;
            have += here;
        }
        Ok(number)
    }

    fn begin_next_piece(&mut self) -> Result<(), Error> {
        let (Some(source), Some(at)) = (self.source, self.next) else {
            return Err(self.error(ErrorKind::EndOfInput));
        };
        self.before = self.position();
        let (bytes, next) = source.piece(at);
        self.piece = BitReader::new(bytes);
        self.next = next;
        self.after = self.after.saturating_sub(self.piece.remaining());
        Ok(())
    }
}

impl fmt::Debug for Reader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (position, remaining) = (self.position(), self.remaining());
        f.debug_struct("Reader").field("position", &position).field("remaining", &remaining).finish()
    }
}

/// Packs values into a borrowed buffer, front to back.
///
/// A failed write of a number writes nothing.
///
/// ```
/// use rakwire::codec::rabbit::Writer;
///
/// let mut buffer = [0; 2];
/// let mut writer = Writer::new(&mut buffer);
/// for (number, width) in [(15, 5), (81, 7), (1, 2)] {
///     writer.bits(number, width)?; // the example of docs/rabbit.md
/// }
/// assert_eq!(writer.finish(), [0x2F, 0x1A]);
/// # Ok::<(), rakwire::codec::rabbit::Error>(())
/// ```
#[derive(Debug)]
pub struct Writer<'b> {
    bits: BitWriter<'b, Lsb>,
}

impl<'b> Writer<'b> {
    /// Creates a writer at the start of `buffer`. Bytes of the buffer after the packed bytes may be overwritten.
    #[must_use]
    pub fn new(buffer: &'b mut [u8]) -> Self {
        Self { bits: BitWriter::new(buffer) }
    }

    /// Returns the number of bits written.
    #[must_use]
    pub const fn position(&self) -> usize {
        self.bits.position()
    }

    /// Returns the written bytes; the unused bits of the last byte are zero.
    #[must_use]
    pub fn finish(self) -> &'b [u8] {
        self.bits.finish()
    }

    /// Appends the low `count` bits of `number`; `count` is 0 to 64 (docs/rabbit.md#raw-numbers).
    ///
    /// # Errors
    /// [`ErrorKind::BadWidth`] if `count` exceeds 64, [`ErrorKind::NoRoom`] if the bits do not fit.
    #[inline]
    pub fn bits(&mut self, number: u64, count: u32) -> Result<(), Error> {
        match self.bits.bits(number, count) {
            Ok(()) => Ok(()),
            Err(_) => Err(self.failed(count)),
        }
    }

    /// Appends one bit.
    ///
    /// # Errors
    /// [`ErrorKind::NoRoom`] if the buffer is full.
    #[inline]
    pub fn bit(&mut self, bit: bool) -> Result<(), Error> {
        self.bits(bit.into(), 1)
    }

    /// Appends whole bytes, at any bit position.
    ///
    /// # Errors
    /// [`ErrorKind::NoRoom`] if the bytes do not fit.
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.bits.bytes(bytes).map_err(|_| self.error(ErrorKind::NoRoom))
    }

    /// Creates an error at the current position.
    #[must_use]
    pub const fn error(&self, kind: ErrorKind) -> Error {
        Error { kind, bit: self.position() }
    }

    #[cold]
    const fn failed(&self, count: u32) -> Error {
        self.error(if count > 64 { ErrorKind::BadWidth } else { ErrorKind::NoRoom })
    }
}

/// An error in packing or unpacking a value, and its position.
///
/// ```
/// use rakwire::codec::rabbit::{ErrorKind, Reader, Unpack};
///
/// // Two bits announce four bytes, which are missing.
/// let error = u32::unpack(&mut Reader::new(&[0b11])).unwrap_err();
/// assert_eq!((error.kind, error.bit), (ErrorKind::EndOfInput, 2));
/// assert_eq!(error.to_string(), "bit 2: the input ends");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error {
    /// The kind of error.
    pub kind: ErrorKind,
    /// The position of the error in the packed bits.
    pub bit: usize,
}

/// The kind of error in packing or unpacking a value.
///
/// ```
/// use rakwire::codec::rabbit::{ErrorKind, pack, unpack};
///
/// assert_eq!(unpack::<u8>(&[]).unwrap_err().kind, ErrorKind::EndOfInput);
/// assert_eq!(pack(&7_u8, &mut []).unwrap_err().kind, ErrorKind::NoRoom);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The input ends within a value.
    EndOfInput,
    /// The output buffer is too small.
    NoRoom,
    /// The input contains an index that no variant of the enum has.
    UnknownVariant {
        /// The name of the enum.
        of: &'static str,
        /// The index that was read.
        index: u32,
    },
    /// The input contains text that is not UTF-8.
    BadUtf8,
    /// There are more elements or bytes than allowed, or than the rest of the input can hold.
    TooMany {
        /// The number of elements or bytes.
        count: u32,
        /// The limit.
        limit: u32,
    },
    /// A number needs more bits than the width of its field.
    TooWide {
        /// The width of the field.
        width: u32,
    },
    /// The width of a number exceeds 64 bits.
    BadWidth,
    /// Sequences are nested deeper than [`MAX_DEPTH`].
    TooDeep,
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EndOfInput => f.write_str("the input ends"),
            Self::NoRoom => f.write_str("the buffer is too small"),
            Self::UnknownVariant { of, index } => write!(f, "{of} has no variant {index}"),
            Self::BadUtf8 => f.write_str("text is not UTF-8"),
            Self::TooMany { count, limit } => write!(f, "{count} elements, but the limit is {limit}"),
            Self::TooWide { width } => write!(f, "a number exceeds the {width} bits of its field"),
            Self::BadWidth => f.write_str("a number has at most 64 bits"),
            Self::TooDeep => f.write_str("sequences are nested too deeply"),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bit {}: {}", self.bit, self.kind)
    }
}

impl core::error::Error for Error {}
