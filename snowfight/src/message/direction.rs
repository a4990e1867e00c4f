use core::fmt;
use core::ops::BitOr;

use rakwire::codec::rabbit::{Pack, Unpack};

/// A set of compass directions; undefined bits are kept (docs/game.md#messages).
///
/// ```
/// use snowfight::message::Direction;
///
/// let direction = Direction::NORTH | Direction::WEST;
/// assert!(direction.has(Direction::WEST) && !direction.has(Direction::EAST));
/// assert_eq!(format!("{direction:?}"), "NORTH | WEST");
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Pack, Unpack)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Direction(pub u8);

impl Direction {
    /// No direction.
    pub const NONE: Self = Self(0);
    /// Toward larger y.
    pub const NORTH: Self = Self(1);
    /// Toward smaller x.
    pub const WEST: Self = Self(2);
    /// Toward smaller y.
    pub const SOUTH: Self = Self(4);
    /// Toward larger x.
    pub const EAST: Self = Self(8);

    const NAMES: [(Self, &'static str); 4] =
        [(Self::NORTH, "NORTH"), (Self::WEST, "WEST"), (Self::SOUTH, "SOUTH"), (Self::EAST, "EAST")];
    const UNDEFINED: u8 = 0xF0;

    /// Returns true if this set contains every direction of `other`.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for Direction {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl fmt::Debug for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Self::NAMES.iter().filter(|(direction, _)| self.has(*direction)).map(|(_, name)| *name);
        let mut separator = "";
        for name in names {
            write!(f, "{separator}{name}")?;
            separator = " | ";
        }
        match self.0 & Self::UNDEFINED {
            0 if separator.is_empty() => f.write_str("(empty)"),
            0 => Ok(()),
            undefined => write!(f, "{separator}{undefined:#x}"),
        }
    }
}
