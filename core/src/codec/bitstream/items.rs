//! The values of the core that stand in a bit stream.

use core::net::SocketAddr;

use super::stream::{BitStreamReader, BitStreamWriter, Item};
use crate::cursor::{Reader, Source, WireError, Writer};
use crate::raknet::{Guid, NetworkId};
use crate::serial::U24;
use crate::wire::address;

/// A bit; its delta is the bit itself, since a flag for it would be as long.
impl Item for bool {
    const HAS_DELTA_FLAG: Self = false;

    fn read(reader: &mut BitStreamReader<'_>) -> Result<Self, WireError> {
        reader.bits.bit()
    }

    fn write(self, writer: &mut BitStreamWriter<'_>) -> Result<(), WireError> {
        writer.bits.bit(self)
    }
}

/// Half the steps of a compressed `f32`, which go from -1 to 1.
const F32_STEPS: f32 = 32_767.5;
/// Half the steps of a compressed `f64`.
const F64_STEPS: f64 = 2_147_483_648.0;

/// Compressed: a fraction of -1..=1 in 16 bits, the nearest step below. Values outside are written as the nearest end,
/// and what is no number as -1.
impl Item for f32 {
    fn read(reader: &mut BitStreamReader<'_>) -> Result<Self, WireError> {
        reader.read().map(Self::from_bits)
    }

    fn write(self, writer: &mut BitStreamWriter<'_>) -> Result<(), WireError> {
        writer.write(self.to_bits())
    }

    fn read_compressed(reader: &mut BitStreamReader<'_>) -> Result<Self, WireError> {
        Ok(Self::from(reader.read::<u16>()?) / F32_STEPS - 1.0)
    }

    fn write_compressed(self, writer: &mut BitStreamWriter<'_>) -> Result<(), WireError> {
        // The cast stays at the ends of the range.
        writer.write(((self + 1.0) * F32_STEPS) as u16)
    }
}

/// Compressed: a fraction of -1..=1 in 32 bits, the nearest step below. The end 1, which overflows in the original, is
/// written as the last step; otherwise as for `f32`.
impl Item for f64 {
    fn read(reader: &mut BitStreamReader<'_>) -> Result<Self, WireError> {
        reader.read().map(Self::from_bits)
    }

    fn write(self, writer: &mut BitStreamWriter<'_>) -> Result<(), WireError> {
        writer.write(self.to_bits())
    }

    fn read_compressed(reader: &mut BitStreamReader<'_>) -> Result<Self, WireError> {
        Ok(Self::from(reader.read::<u32>()?) / F64_STEPS - 1.0)
    }

    fn write_compressed(self, writer: &mut BitStreamWriter<'_>) -> Result<(), WireError> {
        writer.write(((self + 1.0) * F64_STEPS) as u32)
    }
}

/// Aligns, then three bytes, little endian.
impl Item for U24 {
    fn read(reader: &mut BitStreamReader<'_>) -> Result<Self, WireError> {
        let bytes = reader.aligned_bytes(3)?;
        bytes.iter().rev().try_fold(0, |number, byte| Ok(number << 8 | u32::from(*byte))).map(Self::new)
    }

    fn write(self, writer: &mut BitStreamWriter<'_>) -> Result<(), WireError> {
        let [low, middle, high, _] = self.get().to_le_bytes();
        writer.aligned_bytes(&[low, middle, high])
    }
}

impl Item for Guid {
    fn read(reader: &mut BitStreamReader<'_>) -> Result<Self, WireError> {
        reader.read().map(Self)
    }

    fn write(self, writer: &mut BitStreamWriter<'_>) -> Result<(), WireError> {
        writer.write(self.0)
    }
}

impl Item for NetworkId {
    fn read(reader: &mut BitStreamReader<'_>) -> Result<Self, WireError> {
        reader.read().map(Self)
    }

    fn write(self, writer: &mut BitStreamWriter<'_>) -> Result<(), WireError> {
        writer.write(self.0)
    }
}

/// The longest address: version 6.
const ADDRESS: usize = 29;

impl Item for SocketAddr {
    fn read(reader: &mut BitStreamReader<'_>) -> Result<Self, WireError> {
        let mut bytes = [0; ADDRESS];
        let available = (reader.remaining() / 8).min(ADDRESS);
        let mut ahead = reader.bits.clone();
        ahead.bytes(bytes.get_mut(..available).unwrap_or_default())?;
        let mut source = Reader::new(bytes.get(..available).unwrap_or_default());
        let value = address::read(&mut source, "address")?;
        reader.bits.skip((available - source.remaining()) * 8)?;
        Ok(value)
    }

    fn write(self, writer: &mut BitStreamWriter<'_>) -> Result<(), WireError> {
        let mut bytes = [0; ADDRESS];
        let mut plain = Writer::new(&mut bytes);
        address::write(&self, &mut plain)?;
        writer.bits.bytes(plain.finish())
    }
}
