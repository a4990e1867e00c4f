//! RakNet's bit stream, in which games of that library write their messages (supplement 7.2 to 7.5).
//!
//! [`BitStreamReader`] and [`BitStreamWriter`] add RakNet's rules to [`BitReader`] and [`BitWriter`]: bits fill each
//! byte from the most significant, and nothing is aligned except where this table says so.
//!
//! | what | bits |
//! |---|---|
//! | integers, `f32`, `f64` | 8, 16, 32 or 64, big endian; signed ones in two's complement |
//! | `bool` | 1 |
//! | [`U24`](crate::U24) | **aligns**, then 24, little endian |
//! | [`Guid`](crate::raknet::Guid), [`NetworkId`](crate::raknet::NetworkId) | 64, big endian |
//! | `SocketAddr` | 56 or 232, the bytes of [`wire::address`](crate::wire::address) |
//! | compressed integers | 4 to 65, by how many of their *low-order* bytes are zero |
//! | compressed `f32`, `f64` in -1..=1 | 16, 32 |
//! | delta | 1 if the value is the last one, else 1 and the value; `bool` always 1 |
//! | bits of bytes | as many as asked for; the last byte gives its low or its high ones ([`Alignment`]) |
//! | aligned bytes | **aligns**, then the bytes |
//! | aligned bytes, safe | their number as a compressed `u32`; if not 0, **aligns**, then the bytes |
//! | string | length in bytes as `u16`, **aligns**, then the bytes |
//! | compressed string | length in bits as a compressed `u32`, then codes of English frequencies |
//! | `f32` in a range | 16 |
//! | integer in a range | as many as the width of the range needs, low byte first; optionally 1 before it ([`Outside`]) |
//! | vector | length as `f32`; if more than 0.00001, the direction as three compressed `f32` |
//! | unit vector | three times 16, each a fraction of -1..=1 |
//! | unit quaternion, rotation matrix | 4 signs and three times 16 |
//!
//! Strings are bytes: RakNet knows no encoding.
//!
//! A read or write of several fields that fails leaves the position after those that it finished.

mod alignment;
mod huffman;
mod integer;
mod item;
mod ranges;
mod strings;
mod vectors;

pub use alignment::Alignment;
pub use integer::Integer;
pub use item::Item;
pub use ranges::Outside;
pub use vectors::{Matrix, Quaternion, Vector};

use crate::codec::bits::{BitReader, BitWriter, Msb};
use crate::cursor::WireError;

/// Reads what a RakNet bit stream holds.
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
    /// A reader of all bits of `bytes`.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bits: BitReader::new(bytes) }
    }

    /// A reader of the first `count` bits of `bytes`, for messages whose length is no multiple of eight bits.
    ///
    /// # Errors
    /// [`WireError::Truncated`] when `bytes` has fewer.
    pub fn with_bits(bytes: &'a [u8], count: usize) -> Result<Self, WireError> {
        Ok(Self { bits: BitReader::with_bits(bytes, count)? })
    }

    /// The bits themselves, for formats that RakNet does not know.
    pub const fn bits(&mut self) -> &mut BitReader<'a, Msb> {
        &mut self.bits
    }

    /// How many bits remain.
    #[must_use]
    pub const fn remaining(&self) -> usize {
        self.bits.remaining()
    }

    /// Takes a value.
    ///
    /// # Errors
    /// [`WireError::Truncated`], or what [`Item::read`] of the type says.
    pub fn read<T: Item>(&mut self) -> Result<T, WireError> {
        T::read(self)
    }

    /// Takes a compressed value (supplement 7.3).
    ///
    /// # Errors
    /// [`WireError::Truncated`], or what [`Item::read_compressed`] of the type says.
    pub fn read_compressed<T: Item>(&mut self) -> Result<T, WireError> {
        T::read_compressed(self)
    }

    /// Takes a value that was written as a delta to `last`.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_delta<T: Item>(&mut self, last: T) -> Result<T, WireError> {
        T::read_delta(self, last)
    }

    /// Takes a value that was written as a compressed delta to `last`.
    ///
    /// # Errors
    /// As [`read_compressed`](Self::read_compressed).
    pub fn read_compressed_delta<T: Item>(&mut self, last: T) -> Result<T, WireError> {
        T::read_compressed_delta(self, last)
    }
}

/// Writes a RakNet bit stream into a lent buffer, which has the last bits after [`finish`](Self::finish).
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
    /// A writer at the front of `buffer`.
    #[must_use]
    pub fn new(buffer: &'b mut [u8]) -> Self {
        Self { bits: BitWriter::new(buffer) }
    }

    /// The bits themselves, for formats that RakNet does not know.
    pub const fn bits(&mut self) -> &mut BitWriter<'b, Msb> {
        &mut self.bits
    }

    /// How many bits were written.
    #[must_use]
    pub const fn position(&self) -> usize {
        self.bits.position()
    }

    /// What was written; the bits that fill up its last byte are zero.
    #[must_use]
    pub fn finish(self) -> &'b [u8] {
        self.bits.finish()
    }

    /// Appends a value.
    ///
    /// # Errors
    /// [`WireError::NoRoom`], or what [`Item::write`] of the type says. So for the three methods below.
    pub fn write<T: Item>(&mut self, value: T) -> Result<(), WireError> {
        value.write(self)
    }

    /// Appends a compressed value (supplement 7.3).
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_compressed<T: Item>(&mut self, value: T) -> Result<(), WireError> {
        value.write_compressed(self)
    }

    /// Appends a value as a delta: one bit if it equals `last`, which the reader must know.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_delta<T: Item>(&mut self, value: T, last: T) -> Result<(), WireError> {
        value.write_delta(self, last)
    }

    /// Appends a value as a compressed delta: one bit if it equals `last`, which the reader must know.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_compressed_delta<T: Item>(&mut self, value: T, last: T) -> Result<(), WireError> {
        value.write_compressed_delta(self, last)
    }
}

#[cfg(test)]
mod captured_tests;
#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod vector_tests;
