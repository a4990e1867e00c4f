//! Sizes that were tried, by what they are good for. `docs/embedded.md` tells their bytes and how to choose others.

use super::State;

/// A sensor: one connection, messages of some hundred bytes now and then.
///
/// ```
/// use rakwire_embassy::game_protocol::profiles::Sensor;
///
/// assert!(size_of::<Sensor<'static>>() > 0);
/// ```
pub type Sensor<'d> = State<'d, 1, 24, 64, 2>;

/// A player of the snowball fight: one connection, messages of up to 15 KB, which is a whole snapshot of its world and
/// another one that arrives meanwhile.
///
/// ```
/// use rakwire_embassy::game_protocol::profiles::{Player, Sensor};
///
/// assert!(size_of::<Player<'static>>() > size_of::<Sensor<'static>>());
/// ```
pub type Player<'d> = State<'d, 1, 64, 504, 16>;
