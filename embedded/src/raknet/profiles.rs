//! Sizes that were tried, by what they are good for. `docs/embedded.md` tells their bytes and how to choose others.

use super::State;

/// A sensor: one connection, messages of some hundred bytes now and then.
///
/// ```
/// use rakwire_embassy::raknet::profiles::Sensor;
///
/// assert!(size_of::<Sensor<'static>>() > 0);
/// ```
pub type Sensor<'d> = State<'d, 1, 24, 64, 2>;

/// A player: one connection, a snapshot of the game many times a second, messages of up to a kilobyte.
///
/// ```
/// use rakwire_embassy::raknet::profiles::{Player, Sensor};
///
/// assert!(size_of::<Player<'static>>() > size_of::<Sensor<'static>>());
/// ```
pub type Player<'d> = State<'d, 1, 64, 128, 4>;

/// A host of four players.
///
/// ```
/// use rakwire_embassy::raknet::profiles::{HostOfFour, Player};
///
/// assert!(size_of::<HostOfFour<'static>>() > size_of::<Player<'static>>());
/// ```
pub type HostOfFour<'d> = State<'d, 4, 128, 128, 8>;

/// One connection with messages of up to 24 KB, such as a picture or an update in pieces.
///
/// ```
/// use rakwire_embassy::raknet::profiles::{Bulk, HostOfFour};
///
/// assert!(size_of::<Bulk<'static>>() > size_of::<HostOfFour<'static>>());
/// ```
pub type Bulk<'d> = State<'d, 1, 384, 256, 8>;
