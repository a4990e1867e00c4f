//! Reliable UDP for games from one `no_std`, sans-IO core.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(test)]
extern crate std;

mod cookie;
mod cursor;
mod machine;
pub mod raknet;
mod serial;
mod storage;
mod time;

pub use machine::{Machine, Transmit};
pub use serial::U24;
pub use time::Instant;

/// The bytes of RakNet, and the cursors that read and write them.
pub mod wire {
    pub use crate::cursor::{Reader, Source, Value, WireError, Writer};
    pub use crate::raknet::wire::{
        IP_UDP_OVERHEAD, MAX_DATAGRAM, MAX_MTU, MIN_MTU, Wire, address, capsule, control, datagram,
        id, offline,
    };
}
