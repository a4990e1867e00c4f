//! The reader and the writer of a bit stream, and the values that they read and write.

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
    pub(super) bits: BitReader<'a, Msb>,
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

    /// Takes a compressed value (docs/raknet.md#compressed-integers).
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
        if T::HAS_DELTA_FLAG && !self.bits.bit()? { Ok(last) } else { self.read() }
    }

    /// Takes a value that was written as a compressed delta to `last`.
    ///
    /// # Errors
    /// As [`read_compressed`](Self::read_compressed).
    pub fn read_compressed_delta<T: Item>(&mut self, last: T) -> Result<T, WireError> {
        if T::HAS_DELTA_FLAG && !self.bits.bit()? { Ok(last) } else { self.read_compressed() }
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
    pub(super) bits: BitWriter<'b, Msb>,
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

    /// Appends a compressed value (docs/raknet.md#compressed-integers).
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
        if self.delta_flag(value, last)? { self.write(value) } else { Ok(()) }
    }

    /// Appends a value as a compressed delta: one bit if it equals `last`, which the reader must know.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_compressed_delta<T: Item>(&mut self, value: T, last: T) -> Result<(), WireError> {
        if self.delta_flag(value, last)? { self.write_compressed(value) } else { Ok(()) }
    }

    /// Appends the bit before the value of a delta; false when the value is not to follow.
    fn delta_flag<T: Item>(&mut self, value: T, last: T) -> Result<bool, WireError> {
        let follows = !T::HAS_DELTA_FLAG || value != last;
        if T::HAS_DELTA_FLAG {
            self.bits.bit(follows)?;
        }
        Ok(follows)
    }
}

/// A value of a bit stream: integers, `bool`, `f32`, `f64`, [`U24`](crate::U24), [`Guid`](crate::raknet::Guid),
/// [`NetworkId`](crate::raknet::NetworkId), `SocketAddr`, and what an application adds.
///
/// Only [`read`](Self::read) and [`write`](Self::write) are required. What has no compressed form is not compressed, as
/// in RakNet.
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
    /// Whether a delta begins with a bit that tells whether the value follows. Without it the value always does.
    const HAS_DELTA_FLAG: bool = true;

    /// Takes the value.
    ///
    /// # Errors
    /// [`WireError::Truncated`]; an implementor may refuse values with others.
    fn read(reader: &mut BitStreamReader<'_>) -> Result<Self, WireError>;

    /// Appends the value.
    ///
    /// # Errors
    /// [`WireError::NoRoom`].
    fn write(self, writer: &mut BitStreamWriter<'_>) -> Result<(), WireError>;

    /// Takes the value in its compressed form.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    fn read_compressed(reader: &mut BitStreamReader<'_>) -> Result<Self, WireError> {
        Self::read(reader)
    }

    /// Appends the value in its compressed form.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    fn write_compressed(self, writer: &mut BitStreamWriter<'_>) -> Result<(), WireError> {
        self.write(writer)
    }
}
