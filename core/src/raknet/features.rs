//! The features of the crate as constants. The compiler leaves out the code behind a constant that is false.

/// Whether others may connect to this peer (feature `server`).
pub(crate) const SERVER: bool = cfg!(feature = "server");

/// Whether this peer pings and talks to others without a connection (feature `unconnected`).
pub(crate) const UNCONNECTED: bool = cfg!(feature = "unconnected");

/// `room` if a part is built in; else the least that a table can hold.
pub(crate) const fn room(part: bool, room: usize) -> usize {
    if part { room } else { 1 }
}
