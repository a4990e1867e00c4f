//! The types of values in a bit stream.
//!
//! They are integers (plain, compressed, or within a range known to both sides), floats, vectors and rotations.

use core::net::SocketAddr;
use core::ops::RangeInclusive;

use super::{Alignment, BitStreamReader, BitStreamWriter, Item};
use crate::cursor::{Reader, Source, WireError, Writer};
use crate::raknet::{Guid, NetworkId};
use crate::serial::U24;
use crate::wire::address;

/// One bit. Its delta is the bit itself, because a flag would be just as long.
impl Item for bool {
    const HAS_DELTA_FLAG: Self = false;

    fn read(reader: &mut BitStreamReader<'_>) -> Result<Self, WireError> {
        reader.bits.bit()
    }

    fn write(self, writer: &mut BitStreamWriter<'_>) -> Result<(), WireError> {
        writer.bits.bit(self)
    }
}

/// Half of the number of steps of a compressed `f32`, which covers -1 to 1.
const F32_STEPS: f32 = 32_767.5;
/// Half of the number of steps of a compressed `f64`.
const F64_STEPS: f64 = 2_147_483_648.0;

/// Compressed: a value of -1..=1 in 16 bits, rounded down to a step.
///
/// Values outside are clamped, and NaN is written as -1.
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
        // The cast saturates at the ends of the range.
        writer.write(((self + 1.0) * F32_STEPS) as u16)
    }
}

/// Compressed: a value of -1..=1 in 32 bits, rounded down to a step.
///
/// The value 1, which overflows in C++ RakNet, is written as the last step. In all other respects the encoding is like
/// that of `f32`.
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

/// Aligns, then three bytes in little-endian order.
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

/// The size of the longest address, an IPv6 address, in bytes.
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

/// The integers of a bit stream: `u8` to `u64` and `i8` to `i64`. The trait is sealed.
///
/// ```
/// use rakwire::codec::bitstream::{BitStreamReader, Integer};
///
/// fn first<T: Integer>(bytes: &[u8]) -> Option<T> {
///     BitStreamReader::new(bytes).read().ok()
/// }
/// assert_eq!(first::<i16>(&[0xFF, 0xFE]), Some(-2));
/// ```
pub trait Integer: Item + Ord + sealed::Sealed {}

pub(super) mod sealed {
    #[expect(unnameable_types, reason = "without a path to its name no other crate can implement it")]
    pub trait Sealed: Sized {
        const BITS: u32;
        /// Returns `self - base`. Precondition: `base` is not greater than `self`.
        fn above(self, base: Self) -> u64;
        /// Returns `self + distance`, wrapping.
        fn plus(self, distance: u64) -> Self;
    }
}

macro_rules! integers {
    ($($type:ty, $unsigned:ty);+) => {$(
        impl Item for $type {
            fn read(reader: &mut BitStreamReader<'_>) -> Result<Self, WireError> {
                Ok(reader.bits.bits(<$type>::BITS)? as $type)
            }

            fn write(self, writer: &mut BitStreamWriter<'_>) -> Result<(), WireError> {
                writer.bits.bits(self as u64, <$type>::BITS)
            }

            fn read_compressed(reader: &mut BitStreamReader<'_>) -> Result<Self, WireError> {
                let mut bytes = [0; size_of::<$type>()];
                read_compressed(reader, &mut bytes)?;
                Ok(<$type>::from_be_bytes(bytes))
            }

            fn write_compressed(self, writer: &mut BitStreamWriter<'_>) -> Result<(), WireError> {
                write_compressed(writer, &self.to_be_bytes())
            }
        }

        impl Integer for $type {}

        impl sealed::Sealed for $type {
            const BITS: u32 = <$type>::BITS;

            fn above(self, base: Self) -> u64 {
                u64::from(self.wrapping_sub(base) as $unsigned)
            }

            fn plus(self, distance: u64) -> Self {
                self.wrapping_add(distance as $type)
            }
        }
    )+};
}

integers!(u8, u8; u16, u16; u32, u32; u64, u64; i8, u8; i16, u16; i32, u32; i64, u64);

/// Appends a big-endian number without its high zero bytes (docs/raknet.md#compressed-integers).
///
/// A set bit is written for each omitted byte, then a clear bit and the other bytes. If only one byte is left and its
/// high nibble is zero, the high nibble is omitted in the same way.
fn write_compressed(writer: &mut BitStreamWriter<'_>, number: &[u8]) -> Result<(), WireError> {
    let mut rest = number;
    while let [before @ .., last] = rest
        && !before.is_empty()
    {
        if *last != 0 {
            writer.bits.bit(false)?;
            return writer.bits.bytes(rest);
        }
        writer.bits.bit(true)?;
        rest = before;
    }
    let byte = rest.first().copied().unwrap_or(0);
    let small = byte >> 4 == 0;
    writer.bits.bit(small)?;
    writer.bits.bits(byte.into(), if small { 4 } else { 8 })
}

/// Reads a number written by [`write_compressed`]. Precondition: `number` is all zeros.
fn read_compressed(reader: &mut BitStreamReader<'_>, number: &mut [u8]) -> Result<(), WireError> {
    for length in (2..=number.len()).rev() {
        if !reader.bits.bit()? {
            return reader.bits.bytes(number.get_mut(..length).unwrap_or_default());
        }
    }
    let count = if reader.bits.bit()? { 4 } else { 8 };
    let byte = reader.bits.bits(count)?;
    if let Some(first) = number.first_mut() {
        *first = byte as u8;
    }
    Ok(())
}

/// The treatment of integers outside the range. Writer and reader must use the same variant.
///
/// ```
/// use rakwire::codec::bitstream::{BitStreamWriter, OutOfRange};
/// use rakwire::wire::WireError;
///
/// let mut buffer = [0; 8];
/// let mut writer = BitStreamWriter::new(&mut buffer);
/// assert_eq!(writer.ranged(2000_u32, 0..=1000, OutOfRange::Reject), Err(WireError::BadValue));
/// writer.ranged(2000_u32, 0..=1000, OutOfRange::Flag)?;
/// assert_eq!(writer.position(), 33);
/// # Ok::<(), WireError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutOfRange {
    /// Writing an integer outside the range is an error; the encoding has no flag bit.
    Reject,
    /// Writes a set bit and the full-width value; a clear bit precedes values inside the range.
    Flag,
}

/// The number of steps of a 16-bit fraction.
const STEPS: f32 = 65_535.0;

impl BitStreamReader<'_> {
    /// Takes an integer written with the same range.
    ///
    /// # Errors
    /// [`WireError::BadValue`] if the range is empty or the value outside of it, [`WireError::Truncated`] if bits are
    /// missing.
    pub fn ranged<T: Integer>(
        &mut self,
        range: RangeInclusive<T>,
        out_of_range: OutOfRange,
    ) -> Result<T, WireError> {
        let (width, count) = width(&range)?;
        if out_of_range == OutOfRange::Flag && self.bits.bit()? {
            return self.read();
        }
        let mut bytes = [0; 8];
        self.read_bits(&mut bytes, count, Alignment::Right)?;
        let distance = u64::from_le_bytes(bytes);
        if distance > width {
            return Err(WireError::BadValue);
        }
        Ok(range.start().plus(distance))
    }

    /// Takes a number within `range`, in 16 bits.
    ///
    /// # Errors
    /// [`WireError::BadValue`] if the range is empty or not finite, [`WireError::Truncated`] if bits are missing.
    pub fn float16(&mut self, range: RangeInclusive<f32>) -> Result<f32, WireError> {
        let width = float_width(&range)?;
        let steps = f32::from(self.read::<u16>()?);
        Ok((range.start() + steps / STEPS * width).clamp(*range.start(), *range.end()))
    }
}

impl BitStreamWriter<'_> {
    /// Appends an integer in the minimum number of bits for its range: none for a range of one value.
    ///
    /// # Errors
    /// [`WireError::BadValue`] if the range is empty, or with [`OutOfRange::Reject`] if the value is outside;
    /// [`WireError::NoRoom`] if the buffer is full.
    pub fn ranged<T: Integer>(
        &mut self,
        value: T,
        range: RangeInclusive<T>,
        out_of_range: OutOfRange,
    ) -> Result<(), WireError> {
        let (_, count) = width(&range)?;
        match (range.contains(&value), out_of_range) {
            (false, OutOfRange::Reject) => return Err(WireError::BadValue),
            (false, OutOfRange::Flag) => {
                self.bits.bit(true)?;
                return self.write(value);
            }
            (true, OutOfRange::Flag) => self.bits.bit(false)?,
            (true, OutOfRange::Reject) => {}
        }
        let distance = value.above(*range.start());
        self.write_bits(&distance.to_le_bytes(), count, Alignment::Right)
    }

    /// Appends a number within `range` in 16 bits, rounded down to a step; values outside are clamped.
    ///
    /// # Errors
    /// [`WireError::BadValue`] if the range is empty or not finite, [`WireError::NoRoom`] if the buffer is full.
    pub fn float16(&mut self, value: f32, range: RangeInclusive<f32>) -> Result<(), WireError> {
        let width = float_width(&range)?;
        // The cast saturates at the ends of the range and turns NaN into 0.
        self.write((STEPS * (value - range.start()) / width) as u16)
    }
}

/// Returns the width of the range, and the number of bits to encode it.
fn width<T: Integer>(range: &RangeInclusive<T>) -> Result<(u64, usize), WireError> {
    if range.is_empty() {
        return Err(WireError::BadValue);
    }
    let width = range.end().above(*range.start());
    Ok((width, (u64::BITS - width.leading_zeros()) as usize))
}

fn float_width(range: &RangeInclusive<f32>) -> Result<f32, WireError> {
    let width = range.end() - range.start();
    if width > 0.0 && width.is_finite() { Ok(width) } else { Err(WireError::BadValue) }
}

/// A vector: x, y, z.
///
/// ```
/// use rakwire::codec::bitstream::{BitStreamWriter, Vector};
///
/// const GRAVITY: Vector = [0.0, -9.81, 0.0];
/// let mut buffer = [0; 10];
/// assert_eq!(BitStreamWriter::new(&mut buffer).vector(GRAVITY), Ok(()));
/// ```
pub type Vector = [f32; 3];

/// A rotation matrix: three rows.
///
/// ```
/// use rakwire::codec::bitstream::{BitStreamWriter, Matrix};
///
/// const NO_TURN: Matrix = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
/// let mut buffer = [0; 7];
/// assert_eq!(BitStreamWriter::new(&mut buffer).rotation_matrix(NO_TURN), Ok(()));
/// ```
pub type Matrix = [[f32; 3]; 3];

/// A rotation as a unit quaternion.
///
/// ```
/// use rakwire::codec::bitstream::{BitStreamReader, BitStreamWriter, Quaternion};
///
/// let rotation = Quaternion { w: 0.5, x: -0.5, y: 0.5, z: 0.5 };
/// let mut buffer = [0; 7];
/// let mut writer = BitStreamWriter::new(&mut buffer);
/// writer.unit_quaternion(rotation)?;
/// assert_eq!(writer.position(), 52);
/// let read = BitStreamReader::new(writer.finish()).unit_quaternion()?;
/// assert!((read.x - rotation.x).abs() < 0.0001);
/// # Ok::<(), rakwire::wire::WireError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quaternion {
    /// The cosine of half the angle.
    pub w: f32,
    /// The x component of the axis, times the sine of half the angle.
    pub x: f32,
    /// The y component of the axis, times the sine of half the angle.
    pub y: f32,
    /// The z component of the axis, times the sine of half the angle.
    pub z: f32,
}

/// The length below which a vector is treated as zero.
const NO_DIRECTION: f32 = 0.000_01;
/// The number of steps for the magnitude of a quaternion's component, 0 to 1.
const UNIT_STEPS: f64 = 65_535.0;

impl BitStreamReader<'_> {
    /// Takes a vector of any length.
    ///
    /// # Errors
    /// [`WireError::BadValue`] if its length is infinite or NaN, [`WireError::Truncated`] if bits are missing.
    pub fn vector(&mut self) -> Result<Vector, WireError> {
        let length = self.read::<f32>()?;
        if !length.is_finite() {
            return Err(WireError::BadValue);
        }
        if length <= NO_DIRECTION {
            return Ok([0.0; 3]);
        }
        each(|| Ok(self.read_compressed::<f32>()? * length))
    }

    /// Takes a unit vector.
    ///
    /// # Errors
    /// [`WireError::Truncated`] if bits are missing.
    pub fn unit_vector(&mut self) -> Result<Vector, WireError> {
        each(|| self.float16(-1.0..=1.0))
    }

    /// Takes a rotation. Only the sign of w is on the wire; its magnitude follows from the other components.
    ///
    /// # Errors
    /// [`WireError::Truncated`] if bits are missing.
    pub fn unit_quaternion(&mut self) -> Result<Quaternion, WireError> {
        let w_sign = self.sign()?;
        let signs = each(|| self.sign())?;
        let [x, y, z] = each(|| Ok((f64::from(self.read::<u16>()?) / UNIT_STEPS) as f32))?;
        let w = libm::sqrtf((1.0 - x * x - y * y - z * z).max(0.0));
        let [x_sign, y_sign, z_sign] = signs;
        Ok(Quaternion { w: w * w_sign, x: x * x_sign, y: y * y_sign, z: z * z_sign })
    }

    /// Takes a rotation as a matrix.
    ///
    /// # Errors
    /// [`WireError::Truncated`] if bits are missing.
    pub fn rotation_matrix(&mut self) -> Result<Matrix, WireError> {
        self.unit_quaternion().map(matrix)
    }

    fn sign(&mut self) -> Result<f32, WireError> {
        Ok(if self.bits.bit()? { -1.0 } else { 1.0 })
    }
}

impl BitStreamWriter<'_> {
    /// Appends a vector of any length: 80 bits, or 32 if it is shorter than 0.00001.
    ///
    /// # Errors
    /// [`WireError::BadValue`] if its length is infinite or NaN, [`WireError::NoRoom`] if the buffer is full.
    pub fn vector(&mut self, vector: Vector) -> Result<(), WireError> {
        let [x, y, z] = vector;
        let length = libm::sqrtf(x * x + y * y + z * z);
        if !length.is_finite() {
            return Err(WireError::BadValue);
        }
        self.write(length)?;
        if length <= NO_DIRECTION {
            return Ok(());
        }
        vector.into_iter().try_for_each(|part| self.write_compressed(part / length))
    }

    /// Appends a unit vector: 48 bits. Components outside -1..=1 are clamped.
    ///
    /// # Errors
    /// [`WireError::NoRoom`] if the buffer is full.
    pub fn unit_vector(&mut self, vector: Vector) -> Result<(), WireError> {
        vector.into_iter().try_for_each(|part| self.float16(part, -1.0..=1.0))
    }

    /// Appends a rotation: 52 bits.
    ///
    /// # Errors
    /// [`WireError::NoRoom`] if the buffer is full.
    pub fn unit_quaternion(&mut self, rotation: Quaternion) -> Result<(), WireError> {
        let Quaternion { w, x, y, z } = rotation;
        [w, x, y, z].into_iter().try_for_each(|part| self.bits.bit(part < 0.0))?;
        [x, y, z].into_iter().try_for_each(|part| self.write((f64::from(part.abs()) * UNIT_STEPS) as u16))
    }

    /// Appends a rotation given as a matrix: 52 bits.
    ///
    /// If `matrix` is not a rotation, the result is an unspecified rotation.
    ///
    /// # Errors
    /// [`WireError::NoRoom`] if the buffer is full.
    pub fn rotation_matrix(&mut self, matrix: Matrix) -> Result<(), WireError> {
        self.unit_quaternion(quaternion(matrix))
    }
}

/// Calls `read` three times and returns the results in the order of the calls.
fn each<T>(mut read: impl FnMut() -> Result<T, WireError>) -> Result<[T; 3], WireError> {
    Ok([read()?, read()?, read()?])
}

fn quaternion(matrix: Matrix) -> Quaternion {
    let [[m00, m01, m02], [m10, m11, m12], [m20, m21, m22]] = matrix;
    let half_root = |square: f32| libm::sqrtf(square.max(0.0)) / 2.0;
    Quaternion {
        w: half_root(1.0 + m00 + m11 + m22),
        x: half_root(1.0 + m00 - m11 - m22).copysign(m21 - m12),
        y: half_root(1.0 - m00 + m11 - m22).copysign(m02 - m20),
        z: half_root(1.0 - m00 - m11 + m22).copysign(m10 - m01),
    }
}

fn matrix(rotation: Quaternion) -> Matrix {
    let Quaternion { w, x, y, z } = rotation;
    [
        [w * w + x * x - y * y - z * z, 2.0 * (x * y - z * w), 2.0 * (x * z + y * w)],
        [2.0 * (x * y + z * w), w * w - x * x + y * y - z * z, 2.0 * (y * z - x * w)],
        [2.0 * (x * z - y * w), 2.0 * (y * z + x * w), w * w - x * x - y * y + z * z],
    ]
}
