//! RakNet's bit stream, the format of messages in games based on RakNet (docs/raknet.md#bit-streams).
//!
//! [`BitStreamReader`] and [`BitStreamWriter`] add RakNet's rules to [`BitReader`] and [`BitWriter`]. Bits fill each
//! byte from the most significant one, and values are not byte-aligned unless this table says so.
//!
//! | value | bits |
//! |---|---|
//! | integers, `f32`, `f64` | 8, 16, 32 or 64, big endian; signed ones in two's complement |
//! | `bool` | 1 |
//! | [`U24`](crate::U24) | **aligns**, then 24, little endian |
//! | [`Guid`](crate::raknet::Guid), [`NetworkId`](crate::raknet::NetworkId) | 64, big endian |
//! | `SocketAddr` | 56 or 232, the bytes of [`wire::address`](crate::wire::address) |
//! | compressed integers | 4 to 65, depending on the number of zero bytes at the *low-order* end |
//! | compressed `f32`, `f64` in -1..=1 | 16, 32 |
//! | delta | 1 if the value equals the last one, else 1 and the value; `bool` always 1 |
//! | bits of bytes | the given number; of the last byte its low or its high bits ([`Alignment`]) |
//! | aligned bytes | **aligns**, then the bytes |
//! | aligned bytes, safe | their number as a compressed `u32`; if not 0, **aligns**, then the bytes |
//! | string | length in bytes as `u16`, **aligns**, then the bytes |
//! | compressed string | length in bits as a compressed `u32`, then Huffman codes for English text |
//! | `f32` in a range | 16 |
//! | integer in a range | the bits of the width of the range, low byte first; optionally preceded by 1 ([`OutOfRange`]) |
//! | vector | length as `f32`; if more than 0.00001, the direction as three compressed `f32` |
//! | unit vector | three times 16, each a fraction of -1..=1 |
//! | unit quaternion, rotation matrix | 4 signs and three times 16 |
//!
//! Strings are bytes: RakNet specifies no character encoding.
//!
//! If reading or writing several fields fails, the position is after the last complete field.

mod items;
mod strings;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod vector_tests;

use crate::codec::bits::{BitReader, BitWriter, Msb};
use crate::cursor::WireError;

pub use items::{Integer, Matrix, OutOfRange, Quaternion, Vector};

/// Reads values from a RakNet bit stream.
///
/// ```
/// use rakwire::codec::bitstream::BitStreamReader;
///
/// // One bit, then the string "hi": its length follows the bit, its bytes are aligned.
/// let mut reader = BitStreamReader::new(&[0x80, 0x01, 0x00, 0x68, 0x69]);
/// assert!(reader.read::<bool>()?);
/// assert_eq!(reader.string()?, b"hi");
/// # Ok::<(), rakwire::wire::WireError>(())
/// ```
#[derive(Clone, Debug)]
pub struct BitStreamReader<'a> {
    bits: BitReader<'a, Msb>,
}

impl<'a> BitStreamReader<'a> {
    /// Creates a reader of all bits of `bytes`.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bits: BitReader::new(bytes) }
    }

    /// Creates a reader of the first `count` bits of `bytes`, for messages that are not a whole number of bytes.
    ///
    /// # Errors
    /// [`WireError::Truncated`] if `bytes` has fewer than `count` bits.
    pub fn with_bits(bytes: &'a [u8], count: usize) -> Result<Self, WireError> {
        Ok(Self { bits: BitReader::with_bits(bytes, count)? })
    }

    /// Returns the underlying bit reader, for formats that RakNet does not define.
    pub const fn bits(&mut self) -> &mut BitReader<'a, Msb> {
        &mut self.bits
    }

    /// Returns the number of remaining bits.
    #[must_use]
    pub const fn remaining(&self) -> usize {
        self.bits.remaining()
    }

    /// Takes a value.
    ///
    /// # Errors
    /// [`WireError::Truncated`] if bits are missing, or another error of the type's [`Item::read`].
    pub fn read<T: Item>(&mut self) -> Result<T, WireError> {
        T::read(self)
    }

    /// Takes a compressed value (docs/raknet.md#compressed-integers).
    ///
    /// # Errors
    /// [`WireError::Truncated`] if bits are missing, or another error of the type's [`Item::read_compressed`].
    pub fn read_compressed<T: Item>(&mut self) -> Result<T, WireError> {
        T::read_compressed(self)
    }

    /// Takes a value that was written as a delta to `last`.
    ///
    /// # Errors
    /// The errors of [`read`](Self::read).
    pub fn read_delta<T: Item>(&mut self, last: T) -> Result<T, WireError> {
        if T::HAS_DELTA_FLAG && !self.bits.bit()? { Ok(last) } else { self.read() }
    }

    /// Takes a value that was written as a compressed delta to `last`.
    ///
    /// # Errors
    /// The errors of [`read_compressed`](Self::read_compressed).
    pub fn read_compressed_delta<T: Item>(&mut self, last: T) -> Result<T, WireError> {
        if T::HAS_DELTA_FLAG && !self.bits.bit()? { Ok(last) } else { self.read_compressed() }
    }
}

/// Writes a RakNet bit stream into a borrowed buffer. Call [`finish`](Self::finish) to store the last bits.
///
/// ```
/// use rakwire::codec::bitstream::BitStreamWriter;
///
/// let mut buffer = [0; 16];
/// let mut writer = BitStreamWriter::new(&mut buffer);
/// writer.write(true)?;
/// writer.string(b"hi")?;
/// assert_eq!(writer.finish(), [0x80, 0x01, 0x00, 0x68, 0x69]);
/// # Ok::<(), rakwire::wire::WireError>(())
/// ```
#[derive(Debug)]
pub struct BitStreamWriter<'b> {
    bits: BitWriter<'b, Msb>,
}

impl<'b> BitStreamWriter<'b> {
    /// Creates a writer at the start of `buffer`.
    #[must_use]
    pub fn new(buffer: &'b mut [u8]) -> Self {
        Self { bits: BitWriter::new(buffer) }
    }

    /// Returns the underlying bit writer, for formats that RakNet does not define.
    pub const fn bits(&mut self) -> &mut BitWriter<'b, Msb> {
        &mut self.bits
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

    /// Appends a value.
    ///
    /// # Errors
    /// [`WireError::NoRoom`] if the buffer is full, or another error of the type's [`Item::write`].
    pub fn write<T: Item>(&mut self, value: T) -> Result<(), WireError> {
        value.write(self)
    }

    /// Appends a compressed value (docs/raknet.md#compressed-integers).
    ///
    /// # Errors
    /// The errors of [`write`](Self::write).
    pub fn write_compressed<T: Item>(&mut self, value: T) -> Result<(), WireError> {
        value.write_compressed(self)
    }

    /// Appends a value as a delta: a single bit if it equals `last`. The reader must know `last`.
    ///
    /// # Errors
    /// The errors of [`write`](Self::write).
    pub fn write_delta<T: Item>(&mut self, value: T, last: T) -> Result<(), WireError> {
        if self.delta_flag(value, last)? { self.write(value) } else { Ok(()) }
    }

    /// Appends a value as a compressed delta: a single bit if it equals `last`. The reader must know `last`.
    ///
    /// # Errors
    /// The errors of [`write`](Self::write).
    pub fn write_compressed_delta<T: Item>(&mut self, value: T, last: T) -> Result<(), WireError> {
        if self.delta_flag(value, last)? { self.write_compressed(value) } else { Ok(()) }
    }

    /// Appends the flag bit of a delta; returns false if the value need not follow.
    fn delta_flag<T: Item>(&mut self, value: T, last: T) -> Result<bool, WireError> {
        let follows = !T::HAS_DELTA_FLAG || value != last;
        if T::HAS_DELTA_FLAG {
            self.bits.bit(follows)?;
        }
        Ok(follows)
    }
}

/// A type of values in a bit stream.
///
/// Implemented for integers, `bool`, `f32`, `f64`, [`U24`](crate::U24), [`Guid`](crate::raknet::Guid),
/// [`NetworkId`](crate::raknet::NetworkId) and `SocketAddr`; applications may add types. Only [`read`](Self::read)
/// and [`write`](Self::write) are required. As in RakNet, a type without a compressed form is written uncompressed.
///
/// ```
/// use rakwire::codec::bitstream::{BitStreamReader, BitStreamWriter, Item};
/// use rakwire::wire::WireError;
///
/// #[derive(Clone, Copy, Debug, PartialEq)]
/// struct Score(u16);
///
/// impl Item for Score {
///     fn read(reader: &mut BitStreamReader<'_>) -> Result<Self, WireError> {
///         reader.read().map(Self)
///     }
///     fn write(self, writer: &mut BitStreamWriter<'_>) -> Result<(), WireError> {
///         writer.write(self.0)
///     }
/// }
///
/// let mut buffer = [0; 4];
/// let mut writer = BitStreamWriter::new(&mut buffer);
/// writer.write_delta(Score(2), Score(1))?;
/// assert_eq!(writer.finish(), [0x80, 0x01, 0x00]);
/// assert_eq!(BitStreamReader::new(&buffer).read_delta(Score(1)), Ok(Score(2)));
/// # Ok::<(), WireError>(())
/// ```
pub trait Item: Copy + PartialEq {
    /// True if a delta begins with a flag bit that is set if the value follows. If false, the value always follows.
    const HAS_DELTA_FLAG: bool = true;

    /// Takes a value.
    ///
    /// # Errors
    /// [`WireError::Truncated`] if bits are missing; an implementation may return other errors for invalid values.
    fn read(reader: &mut BitStreamReader<'_>) -> Result<Self, WireError>;

    /// Appends a value.
    ///
    /// # Errors
    /// [`WireError::NoRoom`] if the buffer is full.
    fn write(self, writer: &mut BitStreamWriter<'_>) -> Result<(), WireError>;

    /// Takes the value in its compressed form.
    ///
    /// # Errors
    /// The errors of [`read`](Self::read).
    fn read_compressed(reader: &mut BitStreamReader<'_>) -> Result<Self, WireError> {
        Self::read(reader)
    }

    /// Appends the value in its compressed form.
    ///
    /// # Errors
    /// The errors of [`write`](Self::write).
    fn write_compressed(self, writer: &mut BitStreamWriter<'_>) -> Result<(), WireError> {
        self.write(writer)
    }
}

/// The bits of a partial last byte that are used: the low bits or the high bits.
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
    /// The low bits, which is RakNet's default.
    Right,
    /// The high bits.
    Left,
}

impl<'a> BitStreamReader<'a> {
    /// Fills the first bytes of `out` with `count` bits.
    ///
    /// In a partial last byte, `alignment` selects the bits that are filled; the other bits are zero.
    ///
    /// # Errors
    /// [`WireError::BadLength`] if `out` has fewer than `count` bits, [`WireError::Truncated`] if fewer remain.
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

    /// Skips to the next byte boundary and takes `count` bytes without copying them.
    ///
    /// # Errors
    /// [`WireError::Truncated`] if fewer bytes remain.
    pub fn aligned_bytes(&mut self, count: usize) -> Result<&'a [u8], WireError> {
        self.bits.aligned_bytes(count)
    }

    /// Takes bytes that are preceded by their number, which must be at most `max`.
    ///
    /// # Errors
    /// [`WireError::BadLength`] if there are more than `max` (C++ RakNet truncates them and then misreads the rest),
    /// [`WireError::Truncated`] if bytes are missing.
    pub fn aligned_bytes_safe(&mut self, max: usize) -> Result<&'a [u8], WireError> {
        match usize::try_from(self.read_compressed::<u32>()?) {
            Ok(0) => Ok(&[]),
            Ok(count) if count <= max => self.aligned_bytes(count),
            Ok(_) | Err(_) => Err(WireError::BadLength),
        }
    }
}

impl BitStreamWriter<'_> {
    /// Appends `count` bits of `bytes`: whole bytes, then the bits of a partial last byte that `alignment` selects.
    ///
    /// # Errors
    /// [`WireError::BadLength`] if `bytes` has fewer than `count` bits, [`WireError::NoRoom`] if the buffer is full.
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

    /// Aligns to a byte boundary, then appends the bytes.
    ///
    /// # Errors
    /// [`WireError::NoRoom`] if the buffer is full.
    pub fn aligned_bytes(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        self.bits.align();
        self.bits.bytes(bytes)
    }

    /// Appends the bytes, preceded by their number.
    ///
    /// # Errors
    /// [`WireError::BadLength`] if there are 2^32 or more, [`WireError::NoRoom`] if the buffer is full.
    pub fn aligned_bytes_safe(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        let count = u32::try_from(bytes.len()).map_err(|_| WireError::BadLength)?;
        self.write_compressed(count)?;
        if count == 0 { Ok(()) } else { self.aligned_bytes(bytes) }
    }
}
