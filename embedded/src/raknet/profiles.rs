//! Tested memory sizes for typical uses. `docs/embedded.md` lists their bytes and explains how to choose other sizes.

use super::State;

/// A sensor: one connection, occasional messages of a few hundred bytes.
pub type Sensor<'d> = State<'d, 1, 24, 64, 2>;

/// A player: one connection, many snapshots per second, messages of up to a kilobyte.
pub type Player<'d> = State<'d, 1, 64, 128, 4>;

/// A host of four players.
pub type HostOfFour<'d> = State<'d, 4, 128, 128, 8>;

/// Bulk data: one connection, messages of up to 24 KB, such as an image or a firmware update in pieces.
pub type Bulk<'d> = State<'d, 1, 384, 256, 8>;
