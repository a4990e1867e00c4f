//! RakNet over UDP as a `MultiplayerPeer` of Godot 4.
//!
//! The engine sees the class [`RakwirePeer`]. It is a thin layer over [`Session`], which does not depend on the engine: a
//! server or a client with ids, transfer modes and a queue of packets, on an endpoint that is polled once a frame.
//!
//! Both ends are `RakwirePeer`s. The server assigns a random id to each client, in the first message of the connection.
//! A packet is one message of RakNet: the first byte is the transfer channel, and the reliability is the transfer mode.

mod entry;
mod error;
mod gate;
mod options;
mod outbox;
mod packet;
mod peer;
mod session;
mod statistics;
mod values;

pub use self::error::Error;
pub use self::options::{
    ClientSettings, DEFAULT_BACKLOG, DEFAULT_CLOSE_WAIT, ServerSettings, Value, key_bytes,
};
pub use self::packet::{CHANNELS, Mode, Packet, Transfer};
pub use self::peer::RakwirePeer;
pub use self::session::{Identity, Notice, Session, Status};
pub use self::statistics::{Dropped, Figure, Figures};
