//! Numbers whose range both sides know.

use core::ops::RangeInclusive;

use super::{Alignment, BitStreamReader, BitStreamWriter, Integer};
use crate::cursor::WireError;

/// What may happen to an integer outside of its range; both sides must agree.
///
/// ```
/// use rakwire::codec::bitstream::{BitStreamWriter, Outside};
/// use rakwire::wire::WireError;
///
/// let mut buffer = [0; 8];
/// let mut writer = BitStreamWriter::new(&mut buffer);
/// assert_eq!(writer.ranged(2000_u32, 0..=1000, Outside::Refused), Err(WireError::BadValue));
/// writer.ranged(2000_u32, 0..=1000, Outside::Flagged)?;
/// assert_eq!(writer.position(), 33);
/// # Ok::<(), WireError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outside {
    /// It cannot be written; there is no bit for it.
    Refused,
    /// A set bit and the whole value stand for it; a clear bit stands before values inside.
    Flagged,
}

/// Steps of a 16-bit fraction.
const STEPS: f32 = 65_535.0;

impl BitStreamReader<'_> {
    /// Takes an integer that was written with the same range.
    ///
    /// # Errors
    /// [`WireError::BadValue`] when the range is empty or the value not in it, [`WireError::Truncated`].
    pub fn ranged<T: Integer>(&mut self, range: RangeInclusive<T>, outside: Outside) -> Result<T, WireError> {
        let (width, count) = width(&range)?;
        if outside == Outside::Flagged && self.bits.bit()? {
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

    /// Takes a number of a range in 16 bits.
    ///
    /// # Errors
    /// [`WireError::BadValue`] when the range is empty or not finite, [`WireError::Truncated`].
    pub fn float16(&mut self, range: RangeInclusive<f32>) -> Result<f32, WireError> {
        let width = float_width(&range)?;
        let steps = f32::from(self.read::<u16>()?);
        Ok((range.start() + steps / STEPS * width).clamp(*range.start(), *range.end()))
    }
}

impl BitStreamWriter<'_> {
    /// Appends an integer in as many bits as the width of its range needs: none for a range of one value.
    ///
    /// # Errors
    /// [`WireError::BadValue`] when the range is empty, or the value outside and that is [`Outside::Refused`];
    /// [`WireError::NoRoom`].
    pub fn ranged<T: Integer>(
        &mut self,
        value: T,
        range: RangeInclusive<T>,
        outside: Outside,
    ) -> Result<(), WireError> {
        let (_, count) = width(&range)?;
        match (range.contains(&value), outside) {
            (false, Outside::Refused) => return Err(WireError::BadValue),
            (false, Outside::Flagged) => {
                self.bits.bit(true)?;
                return self.write(value);
            }
            (true, Outside::Flagged) => self.bits.bit(false)?,
            (true, Outside::Refused) => {}
        }
        let distance = value.above(*range.start());
        self.write_bits(&distance.to_le_bytes(), count, Alignment::Right)
    }

    /// Appends a number of a range in 16 bits, the nearest step below; outside of it, the nearest end.
    ///
    /// # Errors
    /// [`WireError::BadValue`] when the range is empty or not finite, [`WireError::NoRoom`].
    pub fn float16(&mut self, value: f32, range: RangeInclusive<f32>) -> Result<(), WireError> {
        let width = float_width(&range)?;
        // The cast stays at the ends of the range, and makes 0 of what is no number.
        self.write((STEPS * (value - range.start()) / width) as u16)
    }
}

/// The greatest distance from the start of the range, and the bits that hold it.
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
