//! How much of RakNet is built in, as the features of the crate say. What is not is left out by the compiler: these
//! constants stand in front of it.

/// Others may connect to this peer, and its answers to their pings say so (feature `server`).
pub(crate) const SERVER: bool = cfg!(feature = "server");

/// This peer pings, discovers and talks to others without a connection (feature `unconnected`).
pub(crate) const UNCONNECTED: bool = cfg!(feature = "unconnected");

/// `room` if a part is built in; else the least that a table can have.
pub(crate) const fn room(part: bool, room: usize) -> usize {
    if part { room } else { 1 }
}
