//! RakNet over UDP as a `MultiplayerPeer` of Godot 4.
//!
//! The engine sees only the class [`RakwirePeer`]. It is a thin layer over [`Session`], which does not depend
//! on the engine: a server or client with peer ids, transfer modes and a packet queue, on an endpoint that is
//! polled once per frame.
//!
//! Both ends must be `RakwirePeer`s. In the first message of a connection, the server assigns a random id to
//! the client. A packet is one RakNet message: the first byte is the transfer channel, and the reliability is
//! the transfer mode.

mod entry;
mod error;
mod gate;
mod options;
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
