use core::fmt;

use super::{Error, ErrorKind};
use crate::chunks::{Chunks, Piece};
use crate::codec::bits::{BitReader, Lsb};

/// How deep sequences may stand in each other.
pub const MAX_DEPTH: u8 = 16;

/// Reads packed values from bytes in one piece or several.
///
/// A clone reads the same again. A read of one number that fails takes nothing.
///
/// ```
/// use rakwire::codec::rabbit::Reader;
///
/// // The example of docs/rabbit.md: 15 in 5 bits, 81 in 7, 1 in 2; here with a seam inside of 81.
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
    /// Bits of the pieces that were read.
    before: usize,
    /// Bits of the pieces that were not begun.
    after: usize,
    depth: u8,
}

impl<'a> Reader<'a> {
    /// A reader of bytes in one piece.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { piece: BitReader::new(bytes), source: None, next: None, before: 0, after: 0, depth: 0 }
    }

    /// A reader of bytes in several pieces.
    #[must_use]
    pub fn over(source: &'a dyn Chunks) -> Self {
        let (first, next) = source.piece(Piece::FIRST);
        let piece = BitReader::new(first);
        let after = source.total().saturating_mul(8).saturating_sub(piece.remaining());
        Self { piece, source: Some(source), next, before: 0, after, depth: 0 }
    }

    /// How many bits were taken.
    #[must_use]
    pub const fn position(&self) -> usize {
        self.before + self.piece.position()
    }

    /// How many bits remain, with those that fill up the last byte.
    #[must_use]
    pub const fn remaining(&self) -> usize {
        self.piece.remaining().saturating_add(self.after)
    }

    /// Takes a number of `count` bits, 0 to 64.
    ///
    /// # Errors
    /// [`ErrorKind::BadWidth`] when `count` is more than 64, [`ErrorKind::EndOfInput`] when fewer bits remain.
    #[inline(always)]
    pub fn bits(&mut self, count: u32) -> Result<u64, Error> {
        match self.piece.bits(count) {
            Ok(number) => Ok(number),
            Err(_) => self.bits_across(count),
        }
    }

    /// Takes a number of one to four bytes, and before it, in `prefix` bits, how many they are less one.
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
    /// [`ErrorKind::EndOfInput`] when none remains.
    #[inline]
    pub fn bit(&mut self) -> Result<bool, Error> {
        Ok(self.bits(1)? != 0)
    }

    /// Fills `out`, from whatever bit position.
    ///
    /// # Errors
    /// [`ErrorKind::EndOfInput`] when fewer bytes remain; nothing was taken then.
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

    /// An error at this place.
    #[must_use]
    pub const fn error(&self, kind: ErrorKind) -> Error {
        Error { kind, bit: self.position() }
    }

    /// Reads what is inside of a sequence: sequences may stand in each other, but not as deep as a stack is.
    pub(super) fn within<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        if self.depth >= MAX_DEPTH {
            return Err(self.error(ErrorKind::TooDeep));
        }
        self.depth += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }

    /// A number with a seam inside, or before it.
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
