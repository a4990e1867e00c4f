//! Bytes, whole and in part.

use super::{BitStreamReader, BitStreamWriter};
use crate::cursor::WireError;

/// Which bits of the last byte count when a number of bits is no multiple of eight.
///
/// ```
/// use rakwire::codec::bitstream::{Alignment, BitStreamWriter};
///
/// let mut buffer = [0; 1];
/// let mut writer = BitStreamWriter::new(&mut buffer);
/// writer.write_bits(&[0b0001_0101], 5, Alignment::Right)?;
/// assert_eq!(writer.finish(), [0b10101_000]);
///
/// let mut writer = BitStreamWriter::new(&mut buffer);
/// writer.write_bits(&[0b0001_0101], 5, Alignment::Left)?;
/// assert_eq!(writer.finish(), [0b00010_000]);
/// # Ok::<(), rakwire::wire::WireError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alignment {
    /// Its low bits, as RakNet does where nothing is said.
    Right,
    /// Its high bits.
    Left,
}

impl<'a> BitStreamReader<'a> {
    /// Fills the first bytes of `out` with `count` bits, the last partial one as `alignment` says; its other bits are
    /// zero.
    ///
    /// # Errors
    /// [`WireError::BadLength`] when `out` has fewer bits, [`WireError::Truncated`] when fewer remain.
    pub fn read_bits(&mut self, out: &mut [u8], count: usize, alignment: Alignment) -> Result<(), WireError> {
        let (whole, partial) = (count / 8, (count % 8) as u32);
        let out = out.get_mut(..count.div_ceil(8)).ok_or(WireError::BadLength)?;
        if count > self.bits.remaining() {
            return Err(WireError::Truncated);
        }
        let (bytes, last) = out.split_at_mut_checked(whole).ok_or(WireError::BadLength)?;
        self.bits.bytes(bytes)?;
        if let Some(last) = last.first_mut() {
            let bits = self.bits.bits(partial)? as u8;
            *last = match alignment {
                Alignment::Right => bits,
                Alignment::Left => bits << (8 - partial),
            };
        }
        Ok(())
    }

    /// Aligns, then takes `count` bytes without copying them.
    ///
    /// # Errors
    /// [`WireError::Truncated`].
    pub fn aligned_bytes(&mut self, count: usize) -> Result<&'a [u8], WireError> {
        self.bits.aligned_bytes(count)
    }

    /// Takes bytes whose number, at most `max`, stands before them.
    ///
    /// # Errors
    /// [`WireError::BadLength`] when there are more than `max` (the original cuts them off and loses its place in the
    /// stream), [`WireError::Truncated`].
    pub fn aligned_bytes_safe(&mut self, max: usize) -> Result<&'a [u8], WireError> {
        match usize::try_from(self.read_compressed::<u32>()?) {
            Ok(0) => Ok(&[]),
            Ok(count) if count <= max => self.aligned_bytes(count),
            Ok(_) | Err(_) => Err(WireError::BadLength),
        }
    }
}

impl BitStreamWriter<'_> {
    /// Appends `count` bits of `bytes`: whole bytes, then of the last partial one those that `alignment` says.
    ///
    /// # Errors
    /// [`WireError::BadLength`] when `bytes` has fewer, [`WireError::NoRoom`].
    pub fn write_bits(&mut self, bytes: &[u8], count: usize, alignment: Alignment) -> Result<(), WireError> {
        let (whole, partial) = (count / 8, (count % 8) as u32);
        let bytes = bytes.get(..count.div_ceil(8)).ok_or(WireError::BadLength)?;
        if count > self.bits.room() {
            return Err(WireError::NoRoom);
        }
        let (bytes, last) = bytes.split_at_checked(whole).ok_or(WireError::BadLength)?;
        self.bits.bytes(bytes)?;
        let Some(&last) = last.first() else { return Ok(()) };
        let bits = match alignment {
            Alignment::Right => last,
            Alignment::Left => last >> (8 - partial),
        };
        self.bits.bits(bits.into(), partial)
    }

    /// Aligns, then appends the bytes.
    ///
    /// # Errors
    /// [`WireError::NoRoom`].
    pub fn aligned_bytes(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        self.bits.align();
        self.bits.bytes(bytes)
    }

    /// Appends the bytes and, before them, their number.
    ///
    /// # Errors
    /// [`WireError::BadLength`] when there are 2^32 or more, [`WireError::NoRoom`].
    pub fn aligned_bytes_safe(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        let count = u32::try_from(bytes.len()).map_err(|_| WireError::BadLength)?;
        self.write_compressed(count)?;
        if count == 0 { Ok(()) } else { self.aligned_bytes(bytes) }
    }
}
