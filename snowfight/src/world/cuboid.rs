//! Axis-aligned boxes and collision detection.

use crate::message::Point;

/// The overlap that does not count as a collision, in tiles, because touching boxes have rounding errors.
const SKIN: f32 = 1.0 / 1024.0;

/// An axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Axis {
    X,
    Y,
    Z,
}

impl Axis {
    const ALL: [Self; 3] = [Self::X, Self::Y, Self::Z];

    pub(super) const fn of(self, point: Point) -> f32 {
        match self {
            Self::X => point.x,
            Self::Y => point.y,
            Self::Z => point.z,
        }
    }

    pub(super) const fn set(self, point: &mut Point, value: f32) {
        match self {
            Self::X => point.x = value,
            Self::Y => point.y = value,
            Self::Z => point.z = value,
        }
    }
}

/// An axis-aligned box.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cuboid {
    pub(super) min: Point,
    pub(super) max: Point,
}

/// The contact between a moving box and another one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Contact {
    /// The fraction of the motion before the contact, from 0 to 1.
    pub(super) time: f32,
    /// The axis of the face that is hit.
    pub(super) axis: Axis,
    /// The coordinate of that face along the axis.
    pub(super) face: f32,
}

impl Cuboid {
    /// Creates a box of this size, with the middle of its base at `base`.
    pub(super) fn standing(base: Point, size: Point) -> Self {
        let half = Point::new(size.x / 2.0, size.y / 2.0, 0.0);
        Self { min: base - half, max: base + half + Point::new(0.0, 0.0, size.z) }
    }

    /// Returns the bounding box of the box in motion.
    pub(super) fn along(&self, motion: Point) -> Self {
        let (min, max) = (self.min + motion, self.max + motion);
        let both = |pick: fn(f32, f32) -> f32, a: Point, b: Point| {
            Point::new(pick(a.x, b.x), pick(a.y, b.y), pick(a.z, b.z))
        };
        Self { min: both(f32::min, self.min, min), max: both(f32::max, self.max, max) }
    }

    /// Returns true if the boxes overlap by more than [`SKIN`].
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        Axis::ALL.iter().all(|axis| self.depth(other, *axis) > SKIN)
    }

    /// Returns the overlap along an axis.
    fn depth(&self, other: &Self, axis: Axis) -> f32 {
        let low = axis.of(self.min).max(axis.of(other.min));
        axis.of(self.max).min(axis.of(other.max)) - low
    }

    /// Returns the shortest horizontal displacement of this box that ends its overlap with `other`; `None` without
    /// overlap.
    pub(super) fn separation_from(&self, other: &Self) -> Option<Point> {
        if !self.overlaps(other) {
            return None;
        }
        let way = |axis: Axis| {
            let back = axis.of(other.min) - axis.of(self.max);
            let forth = axis.of(other.max) - axis.of(self.min);
            if forth < -back { forth } else { back }
        };
        let (x, y) = (way(Axis::X), way(Axis::Y));
        Some(if x.abs() < y.abs() { Point::new(x, 0.0, 0.0) } else { Point::new(0.0, y, 0.0) })
    }

    /// Returns the contact between this box in motion and `other`, if there is one. The boxes must not overlap before
    /// the motion.
    pub(super) fn sweep(&self, motion: Point, other: &Self) -> Option<Contact> {
        let mut contact: Option<Contact> = None;
        let mut end = f32::INFINITY;
        for axis in Axis::ALL {
            let speed = axis.of(motion);
            let ahead = axis.of(other.min) - (axis.of(self.max) - SKIN);
            let behind = axis.of(other.max) - (axis.of(self.min) + SKIN);
            if speed == 0.0 {
                if ahead >= 0.0 || behind <= 0.0 {
                    return None;
                }
                continue;
            }
            let (first, last) = if speed > 0.0 { (ahead, behind) } else { (behind, ahead) };
            end = end.min(last / speed);
            let time = first / speed;
            if contact.is_none_or(|before| time > before.time) {
                let face = if speed > 0.0 { axis.of(other.min) } else { axis.of(other.max) };
                contact = Some(Contact { time, axis, face });
            }
        }
        contact.filter(|contact| contact.time < end && (0.0..=1.0).contains(&contact.time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIT: Point = Point::new(1.0, 1.0, 1.0);

    fn unit(x: f32, y: f32) -> Cuboid {
        Cuboid::standing(Point::new(x, y, 0.0), UNIT)
    }

    #[test]
    fn motion_stops_at_the_first_face() {
        let contact =
            unit(0.0, 0.0).sweep(Point::new(4.0, 0.0, 0.0), &unit(3.0, 0.5)).expect("the boxes collide");
        assert_eq!((contact.axis, contact.face), (Axis::X, 2.5));
        assert!((contact.time - 0.5).abs() < 0.001);
        let contact =
            unit(0.0, 0.0).sweep(Point::new(0.0, -4.0, 0.0), &unit(0.0, -3.0)).expect("the boxes collide");
        assert_eq!((contact.axis, contact.face), (Axis::Y, -2.5));
    }

    #[test]
    fn touching_boxes_slide_along_each_other() {
        assert_eq!(unit(0.0, 0.0).sweep(Point::new(0.0, 4.0, 0.0), &unit(1.0, 2.0)), None);
        assert_eq!(unit(0.0, 0.0).sweep(Point::new(-1.0, 0.0, 0.0), &unit(1.0, 0.0)), None);
        assert!(unit(0.0, 0.0).sweep(Point::new(1.0, 0.0, 0.0), &unit(1.0, 0.0)).is_some());
        assert!(!unit(0.0, 0.0).overlaps(&unit(1.0, 0.0)));
    }

    #[test]
    fn separation_is_the_shortest_displacement() {
        assert_eq!(unit(0.75, 0.25).separation_from(&unit(0.0, 0.0)), Some(Point::new(0.25, 0.0, 0.0)));
        assert_eq!(unit(0.25, -0.75).separation_from(&unit(0.0, 0.0)), Some(Point::new(0.0, -0.25, 0.0)));
        assert_eq!(unit(2.0, 0.0).separation_from(&unit(0.0, 0.0)), None);
    }

    #[test]
    fn infinite_motion_has_no_contact() {
        let nowhere = Point::new(f32::NAN, f32::INFINITY, 0.0);
        assert_eq!(unit(0.0, 0.0).sweep(nowhere, &unit(1.0, 0.0)), None);
    }
}
