//! Tested memory sizes for typical uses. `docs/embedded.md` lists their bytes and explains how to choose other sizes.

use super::State;

/// A sensor: one connection, occasional messages of a few hundred bytes.
pub type Sensor<'d> = State<'d, 1, 24, 64, 2>;

/// A player of the snowball fight: one connection, messages of up to 15 KB, enough for a whole snapshot of the world while
/// the next one arrives.
pub type Player<'d> = State<'d, 1, 64, 504, 16>;
