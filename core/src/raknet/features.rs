//! The features of the crate as constants. The compiler leaves out the code behind a constant that is false.

/// Whether others may connect to this peer (feature `server`).
pub(crate) const SERVER: bool = cfg!(feature = "server");

/// Whether this peer pings and talks to others without a connection (feature `unconnected`).
pub(crate) const UNCONNECTED: bool = cfg!(feature = "unconnected");

/// Whether there are more channels than those whose state is part of a connection (feature `channels`).
pub(crate) const FAR_CHANNELS: bool = cfg!(feature = "channels");

/// Whether messages that wait for their turn share blocks (feature `packing`).
pub(crate) const PACKING: bool = cfg!(feature = "packing");

/// Whether messages may be longer than a datagram (feature `splitting`).
pub(crate) const SPLITTING: bool = cfg!(feature = "splitting");

/// Whether there are messages of which only the newest counts (feature `sequencing`).
pub(crate) const SEQUENCING: bool = cfg!(feature = "sequencing");

/// Whether some messages go before others (feature `priorities`).
pub(crate) const PRIORITIES: bool = cfg!(feature = "priorities");

/// `room` if a part is built in; else the least that a table can hold.
pub(crate) const fn room(part: bool, room: usize) -> usize {
    if part { room } else { 1 }
}
