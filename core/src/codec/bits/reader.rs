use core::marker::PhantomData;

use super::{CHUNK_BYTES, HALF, Lsb, MAX_BYTES, Order, offset};
use crate::cursor::WireError;

/// Reads bits from the front of a byte slice.
///
/// A read that fails takes nothing.
///
/// ```
/// use rakwire::codec::bits::{BitReader, Msb};
/// use rakwire::wire::WireError;
///
/// let mut reader = BitReader::<Msb>::new(&[0b1010_0000, 0xFF]);
/// assert_eq!(reader.bits(3), Ok(0b101));
/// assert_eq!(reader.bits(6), Ok(1));
/// assert_eq!(reader.remaining(), 7);
/// assert_eq!(reader.bits(8), Err(WireError::Truncated));
/// ```
#[derive(Clone, Debug)]
pub struct BitReader<'a, O: Order> {
    bytes: &'a [u8],
    at: usize,
    end: usize,
    order: PhantomData<O>,
}

impl<'a, O: Order> BitReader<'a, O> {
    /// A reader of all bits of `bytes`. Of a slice longer than `usize::MAX / 8` bytes the rest is not seen.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, end: bytes.len().min(MAX_BYTES) * 8, order: PhantomData }
    }

    /// A reader of the first `count` bits of `bytes`.
    ///
    /// # Errors
    /// [`WireError::Truncated`] when `bytes` has fewer.
    pub fn with_bits(bytes: &'a [u8], count: usize) -> Result<Self, WireError> {
        let all = Self::new(bytes);
        if count > all.end {
            return Err(WireError::Truncated);
        }
        Ok(Self { end: count, ..all })
    }

    /// How many bits were taken.
    #[must_use]
    pub const fn position(&self) -> usize {
        self.at
    }

    /// How many bits remain.
    #[must_use]
    pub const fn remaining(&self) -> usize {
        self.end - self.at
    }

    /// Takes one bit.
    ///
    /// # Errors
    /// [`WireError::Truncated`] when none remains.
    #[inline]
    pub fn bit(&mut self) -> Result<bool, WireError> {
        Ok(self.bits(1)? != 0)
    }

    /// Takes a number of `count` bits, 0 to 64; none is the number 0.
    ///
    /// # Errors
    /// [`WireError::BadLength`] when `count` is more than 64, [`WireError::Truncated`] when fewer bits remain.
    #[inline(always)]
    pub fn bits(&mut self, count: u32) -> Result<u64, WireError> {
        if count > 64 {
            return Err(WireError::BadLength);
        }
        self.check(count as usize)?;
        Ok(if count == 0 {
            0
        } else if offset(self.at) + count <= 64 {
            self.chunk(count)
        } else {
            let first = self.chunk(HALF);
            let second = self.chunk(count - HALF);
            O::join(first, second, count - HALF)
        })
    }

    /// Fills `out`, from whatever bit position.
    ///
    /// # Errors
    /// [`WireError::Truncated`] when fewer bytes remain; `out` is as it was then.
    pub fn bytes(&mut self, out: &mut [u8]) -> Result<(), WireError> {
        self.check(out.len().checked_mul(8).ok_or(WireError::Truncated)?)?;
        if offset(self.at) == 0 {
            out.copy_from_slice(self.aligned_bytes(out.len())?);
            return Ok(());
        }
        for chunk in out.chunks_mut(CHUNK_BYTES) {
            let count = bits_of(chunk);
            let bytes = O::store(O::place(self.chunk(count), 0, count));
            chunk.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
        }
        Ok(())
    }

    /// Skips to the next byte boundary, or to the end if that comes first; nothing at a boundary.
    pub fn align(&mut self) {
        self.at = self.at.next_multiple_of(8).min(self.end);
    }

    /// Aligns, then takes `count` bytes without copying them.
    ///
    /// # Errors
    /// [`WireError::Truncated`] when fewer remain after the alignment; nothing was taken then, nor aligned.
    pub fn aligned_bytes(&mut self, count: usize) -> Result<&'a [u8], WireError> {
        let before = self.at;
        self.align();
        let bits = count.checked_mul(8).ok_or(WireError::Truncated);
        let taken = bits.and_then(|bits| {
            self.check(bits)?;
            let rest = self.bytes.get(self.at / 8..).ok_or(WireError::Truncated)?;
            let bytes = rest.get(..count).ok_or(WireError::Truncated)?;
            self.at += bits;
            Ok(bytes)
        });
        if taken.is_err() {
            self.at = before;
        }
        taken
    }

    /// Skips `count` bits.
    ///
    /// # Errors
    /// [`WireError::Truncated`] when fewer remain.
    #[inline(always)]
    pub fn skip(&mut self, count: usize) -> Result<(), WireError> {
        self.check(count)?;
        self.at += count;
        Ok(())
    }

    #[inline(always)]
    fn check(&self, count: usize) -> Result<(), WireError> {
        if count > self.remaining() { Err(WireError::Truncated) } else { Ok(()) }
    }

    /// Takes 1 to 64 bits that the window holds; the caller has checked that they remain.
    #[inline(always)]
    fn chunk(&mut self, count: u32) -> u64 {
        let number = O::extract(self.window(), offset(self.at), count);
        self.at += count as usize;
        number
    }

    /// The eight bytes from the one that the next bit is in, zeros after the end.
    #[inline(always)]
    fn window(&self) -> u64 {
        let rest = self.bytes.get(self.at / 8..).unwrap_or(&[]);
        let bytes = rest.first_chunk().copied().unwrap_or_else(|| padded(rest));
        O::load(bytes)
    }
}

impl BitReader<'_, Lsb> {
    /// The next 57 bits and perhaps more, without taking them; what is behind the end is not defined.
    #[inline(always)]
    pub(crate) fn peek(&self) -> u64 {
        self.window() >> offset(self.at)
    }
}

/// How many bits a chunk of at most seven bytes has.
pub(super) const fn bits_of(chunk: &[u8]) -> u32 {
    (chunk.len() as u32) * 8
}

/// The first eight bytes, with zeros for those that are not there.
pub(super) fn padded(bytes: &[u8]) -> [u8; 8] {
    let mut eight = [0; 8];
    eight.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    eight
}
