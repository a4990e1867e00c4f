//! Vectors and rotations.

use super::{BitStreamReader, BitStreamWriter};
use crate::cursor::WireError;

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

/// A rotation as a matrix: three rows.
///
/// ```
/// use rakwire::codec::bitstream::{BitStreamWriter, Matrix};
///
/// const NO_TURN: Matrix = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
/// let mut buffer = [0; 7];
/// assert_eq!(BitStreamWriter::new(&mut buffer).rotation_matrix(NO_TURN), Ok(()));
/// ```
pub type Matrix = [[f32; 3]; 3];

/// A rotation as a quaternion of length 1.
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
    /// The axis, times the sine of half the angle.
    pub x: f32,
    /// See `x`.
    pub y: f32,
    /// See `x`.
    pub z: f32,
}

/// The length below which a vector has no direction.
const NO_DIRECTION: f32 = 0.000_01;
/// Steps of a component of a quaternion, which goes from 0 to 1.
const STEPS: f64 = 65_535.0;

impl BitStreamReader<'_> {
    /// Takes a vector of any length.
    ///
    /// # Errors
    /// [`WireError::BadValue`] when its length is infinite or no number, [`WireError::Truncated`].
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

    /// Takes a vector of length 1.
    ///
    /// # Errors
    /// [`WireError::Truncated`].
    pub fn unit_vector(&mut self) -> Result<Vector, WireError> {
        each(|| self.float16(-1.0..=1.0))
    }

    /// Takes a rotation. Of w only the sign is on the wire; what the other three leave over is its size.
    ///
    /// # Errors
    /// [`WireError::Truncated`].
    pub fn unit_quaternion(&mut self) -> Result<Quaternion, WireError> {
        let w_sign = self.sign()?;
        let signs = each(|| self.sign())?;
        let [x, y, z] = each(|| Ok((f64::from(self.read::<u16>()?) / STEPS) as f32))?;
        let w = libm::sqrtf((1.0 - x * x - y * y - z * z).max(0.0));
        let [x_sign, y_sign, z_sign] = signs;
        Ok(Quaternion { w: w * w_sign, x: x * x_sign, y: y * y_sign, z: z * z_sign })
    }

    /// Takes a rotation as a matrix.
    ///
    /// # Errors
    /// [`WireError::Truncated`].
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
    /// [`WireError::BadValue`] when its length is infinite or no number, [`WireError::NoRoom`].
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

    /// Appends a vector of length 1: 48 bits. Components outside of -1..=1 are written as the nearest end.
    ///
    /// # Errors
    /// [`WireError::NoRoom`].
    pub fn unit_vector(&mut self, vector: Vector) -> Result<(), WireError> {
        vector.into_iter().try_for_each(|part| self.float16(part, -1.0..=1.0))
    }

    /// Appends a rotation: 52 bits.
    ///
    /// # Errors
    /// [`WireError::NoRoom`].
    pub fn unit_quaternion(&mut self, rotation: Quaternion) -> Result<(), WireError> {
        let Quaternion { w, x, y, z } = rotation;
        [w, x, y, z].into_iter().try_for_each(|part| self.bits.bit(part < 0.0))?;
        [x, y, z].into_iter().try_for_each(|part| self.write((f64::from(part.abs()) * STEPS) as u16))
    }

    /// Appends a rotation that is given as a matrix: 52 bits. What is no rotation comes out as some rotation.
    ///
    /// # Errors
    /// [`WireError::NoRoom`].
    pub fn rotation_matrix(&mut self, matrix: Matrix) -> Result<(), WireError> {
        self.unit_quaternion(quaternion(matrix))
    }
}

/// Reads three times, in order.
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
