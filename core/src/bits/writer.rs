use core::marker::PhantomData;

use super::reader::{bits_of, padded};
use super::{CHUNK_BYTES, HALF, MAX_BYTES, Order, low, offset};
use crate::cursor::WireError;

/// Writes bits to the front of a byte slice.
///
/// What the buffer held before does not matter, and is not kept behind what was written. A write that fails writes
/// nothing.
///
/// ```
/// use rakwire::bits::{BitWriter, Lsb, Msb};
///
/// let mut buffer = [0xEE; 2];
/// let mut writer = BitWriter::<Msb>::new(&mut buffer);
/// writer.bits(0b101, 3)?;
/// writer.bits(0x3F, 6)?;
/// assert_eq!(writer.finish(), [0b1011_1111, 0b1000_0000]);
///
/// let mut writer = BitWriter::<Lsb>::new(&mut buffer);
/// writer.bits(0b101, 3)?;
/// writer.bits(0x3F, 6)?;
/// assert_eq!(writer.finish(), [0b1111_1101, 0b0000_0001]);
/// # Ok::<(), rakwire::wire::WireError>(())
/// ```
#[derive(Debug)]
pub struct BitWriter<'b, O: Order> {
    buffer: &'b mut [u8],
    /// The bits after it in its byte are zero, unless it is the first of that byte.
    at: usize,
    end: usize,
    order: PhantomData<O>,
}

impl<'b, O: Order> BitWriter<'b, O> {
    /// A writer at the front of `buffer`. Of a slice longer than `usize::MAX / 8` bytes the rest is not used.
    #[must_use]
    pub fn new(buffer: &'b mut [u8]) -> Self {
        let end = buffer.len().min(MAX_BYTES) * 8;
        Self { buffer, at: 0, end, order: PhantomData }
    }

    /// How many bits were written.
    #[must_use]
    pub const fn position(&self) -> usize {
        self.at
    }

    /// How many more bits fit.
    #[must_use]
    pub const fn room(&self) -> usize {
        self.end - self.at
    }

    /// What was written; the bits that fill up its last byte are zero.
    #[must_use]
    pub fn finish(self) -> &'b [u8] {
        self.buffer.get(..self.at.div_ceil(8)).unwrap_or(&[])
    }

    /// Appends one bit.
    ///
    /// # Errors
    /// [`WireError::NoRoom`].
    #[inline]
    pub fn bit(&mut self, bit: bool) -> Result<(), WireError> {
        self.bits(bit.into(), 1)
    }

    /// Appends the low `count` bits of `number`, 0 to 64; the others do not matter.
    ///
    /// # Errors
    /// [`WireError::BadLength`] when `count` is more than 64, [`WireError::NoRoom`] when they do not fit.
    #[inline]
    pub fn bits(&mut self, number: u64, count: u32) -> Result<(), WireError> {
        if count > 64 {
            return Err(WireError::BadLength);
        }
        self.check(count as usize)?;
        if count == 0 {
            return Ok(());
        }
        if offset(self.at) + count <= 64 {
            self.chunk(number, count);
        } else {
            let (first, second) = O::split(number, count - HALF);
            self.chunk(first, HALF);
            self.chunk(second, count - HALF);
        }
        Ok(())
    }

    /// Appends whole bytes, at whatever bit position.
    ///
    /// # Errors
    /// [`WireError::NoRoom`].
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        let bits = bytes.len().checked_mul(8).ok_or(WireError::NoRoom)?;
        self.check(bits)?;
        if offset(self.at) != 0 {
            for chunk in bytes.chunks(CHUNK_BYTES) {
                let count = bits_of(chunk);
                self.chunk(O::extract(O::load(padded(chunk)), 0, count), count);
            }
            return Ok(());
        }
        let rest = self.buffer.get_mut(self.at / 8..).ok_or(WireError::NoRoom)?;
        rest.get_mut(..bytes.len()).ok_or(WireError::NoRoom)?.copy_from_slice(bytes);
        self.at += bits;
        Ok(())
    }

    /// Fills up the byte that was begun with zeros; nothing at a byte boundary.
    pub const fn align(&mut self) {
        self.at = self.at.next_multiple_of(8);
    }

    #[inline]
    fn check(&self, count: usize) -> Result<(), WireError> {
        if count > self.room() { Err(WireError::NoRoom) } else { Ok(()) }
    }

    /// Appends 1 to 64 bits that a window holds; the caller has checked that they fit.
    #[inline]
    fn chunk(&mut self, number: u64, count: u32) {
        let skip = offset(self.at);
        let bytes = O::store(O::place(low(number, count), skip, count));
        let touched = ((skip + count) as usize).div_ceil(8);
        let room = self.buffer.get_mut(self.at / 8..).unwrap_or_default();
        let begun = if skip == 0 { 0 } else { room.first().copied().unwrap_or(0) };
        if let Some(eight) = room.first_chunk_mut() {
            *eight = bytes;
        } else {
            room.iter_mut().zip(bytes).take(touched).for_each(|(to, from)| *to = from);
        }
        if let Some(first) = room.first_mut() {
            *first |= begun;
        }
        self.at += count as usize;
    }
}
