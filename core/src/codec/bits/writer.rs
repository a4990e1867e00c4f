use core::marker::PhantomData;

use super::reader::{bits_of, padded};
use super::{CHUNK_BYTES, MAX_BYTES, Order, low, offset};
use crate::cursor::WireError;

/// The bits of a window.
const WINDOW: usize = u64::BITS as usize;

/// Writes bits to the front of a byte slice.
///
/// What the buffer held before does not matter. A write that fails writes nothing. [`finish`](Self::finish) brings the last
/// bits into the buffer.
///
/// ```
/// use rakwire::codec::bits::{BitWriter, Lsb, Msb};
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
    at: usize,
    end: usize,
    /// What was written since the last multiple of 64 bits and is not in the buffer yet; the rest of it is zero.
    window: u64,
    order: PhantomData<O>,
}

impl<'b, O: Order> BitWriter<'b, O> {
    /// A writer at the front of `buffer`. Of a slice longer than `usize::MAX / 8` bytes the rest is not used.
    #[must_use]
    pub fn new(buffer: &'b mut [u8]) -> Self {
        let end = buffer.len().min(MAX_BYTES) * 8;
        Self { buffer, at: 0, end, window: 0, order: PhantomData }
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
    pub fn finish(mut self) -> &'b [u8] {
        self.store_begun();
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
        if count > 0 {
            self.push(low(number, count), count);
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
                self.push(O::extract(O::load(padded(chunk)), 0, count), count);
            }
            return Ok(());
        }
        self.store_begun();
        let rest = self.buffer.get_mut(self.at / 8..).ok_or(WireError::NoRoom)?;
        rest.get_mut(..bytes.len()).ok_or(WireError::NoRoom)?.copy_from_slice(bytes);
        self.at += bits;
        self.window = O::load(padded(self.buffer.get(self.begun()..self.at / 8).unwrap_or_default()));
        Ok(())
    }

    /// Fills up the byte that was begun with zeros; nothing at a byte boundary.
    pub fn align(&mut self) {
        let count = self.at.wrapping_neg() as u32 % 8;
        if count > 0 {
            self.push(0, count);
        }
    }

    #[inline]
    fn check(&self, count: usize) -> Result<(), WireError> {
        if count > self.room() { Err(WireError::NoRoom) } else { Ok(()) }
    }

    /// Appends a number of 1 to 64 bits, which fit.
    #[inline(always)]
    fn push(&mut self, number: u64, count: u32) {
        let held = (self.at % WINDOW) as u32;
        self.window |= O::place(number, held, count);
        if let Some(over) = (held + count).checked_sub(u64::BITS) {
            self.store_window();
            self.window = if over == 0 { 0 } else { O::rest(number, count, over) };
        }
        self.at += count as usize;
    }

    /// The byte in the buffer that the window begins with.
    #[inline]
    const fn begun(&self) -> usize {
        self.at / WINDOW * 8
    }

    #[inline]
    fn store_window(&mut self) {
        let room = self.buffer.get_mut(self.begun()..).unwrap_or_default();
        if let Some(eight) = room.first_chunk_mut() {
            *eight = O::store(self.window);
        }
    }

    /// Stores the bytes of the window that were begun.
    fn store_begun(&mut self) {
        let room = self.buffer.get_mut(self.begun()..self.at.div_ceil(8)).unwrap_or_default();
        room.iter_mut().zip(O::store(self.window)).for_each(|(to, from)| *to = from);
    }
}
