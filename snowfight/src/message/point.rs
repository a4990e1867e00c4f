use core::ops::{Add, Mul, Sub};

use rakwire::codec::rabbit::{Pack, Unpack};

/// A position, a distance or a velocity in tiles: x points east, y north, z up.
///
/// ```
/// use snowfight::message::Point;
///
/// let point = Point::new(3.0, 0.0, 4.0);
/// assert_eq!((point.length(), point * 2.0 - point), (5.0, point));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Pack, Unpack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Point {
    /// The coordinate toward the east.
    pub x: f32,
    /// The coordinate toward the north.
    pub y: f32,
    /// The height.
    pub z: f32,
}

impl Point {
    /// Creates a point with these coordinates.
    #[must_use]
    pub const fn new(x: f32, y: f32, z: f32) -> Self {
        Self { x, y, z }
    }

    /// Returns the distance from the origin; the result is identical on every machine.
    #[must_use]
    pub fn length(self) -> f32 {
        libm::sqrtf(self.x * self.x + self.y * self.y + self.z * self.z)
    }
}

impl Add for Point {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self::new(self.x + other.x, self.y + other.y, self.z + other.z)
    }
}

impl Sub for Point {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self::new(self.x - other.x, self.y - other.y, self.z - other.z)
    }
}

impl Mul<f32> for Point {
    type Output = Self;

    fn mul(self, factor: f32) -> Self {
        Self::new(self.x * factor, self.y * factor, self.z * factor)
    }
}
